"""Any damage of any durable file is an error that names the file; nothing of it is loaded."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.damage.damages import cases_of, some_of
from tests.damage.files import KINDS, Left, directories, kind_of
from tests.damage.reading import fault_of, read_all

CASES = 15  # of each kind of file; `python -m tests.damage` runs more


@pytest.fixture(scope="module")
def left_by_jobs() -> Sequence[Left]:
    return directories()


def test_reading_opens_every_file_that_is_left(left_by_jobs: Sequence[Left]) -> None:
    for left in left_by_jobs:
        left.disk.history.clear()
        read_all(left.directory, left.mode)
        opened = {line.partition("open /checkpoints/")[2] for line in left.disk.history}
        assert set(left.files) <= opened


def test_the_jobs_have_left_every_kind_of_file(left_by_jobs: Sequence[Left]) -> None:
    assert {kind_of(name) for left in left_by_jobs for name in left.files} == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_found_and_named(kind: str, left_by_jobs: Sequence[Left]) -> None:
    cases = [
        (left, case)
        for left in left_by_jobs
        for name, data in left.files.items()
        if kind_of(name) == kind
        for case in cases_of(name, data)
    ]

    faults = [fault_of(left, case) for left, case in some_of(cases, CASES, seed=1)]

    assert [fault for fault in faults if fault] == []
