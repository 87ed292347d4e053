"""Damaged files of every format: read whole and equal, or refused with file and line.

A short run of `python -m tests.support.fuzz_data`, which by hand goes on for minutes.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import fuzz_data
from tests.support.fuzz_data import CASES


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory):
    return tmp_path_factory.mktemp("fuzz") / "damaged"


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=40, derandomize=True)
@given(st.randoms(use_true_random=False), st.sampled_from([16, 64, 1 << 16]))
def test_no_damage_is_misread(path, name: str, draw: random.Random, block_bytes: int) -> None:
    case = CASES[name]
    data = fuzz_data.damaged(case.make(draw), draw)

    assert fuzz_data.verdict(case, data, path, block_bytes) in fuzz_data.VERDICTS


@pytest.mark.parametrize("name", CASES)
def test_what_is_not_damaged_is_read(path, name: str) -> None:
    draw = random.Random(name)
    case = CASES[name]

    assert {fuzz_data.verdict(case, case.make(draw), path) for _ in range(10)} == {"read"}
