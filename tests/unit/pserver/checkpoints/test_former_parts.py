"""A part that the former process of a pserver has written: a manifest may name it, so it stays."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np

from psrt.coordinator.part_chain import PartOutcome
from psrt.core.errors import StorageError
from psrt.core.threads import CrashReport
from psrt.pserver.checkpoints import Cutting, Settings
from psrt.pserver.eviction import Upkeep
from psrt.pserver.tables import Meters, TableRegistry
from psrt.storage.local_directory import LocalDirectory
from tests.support.frozen import BASE, WIDTH

WAIT_S = 30.0


class Unlisted(LocalDirectory):
    """A directory that cannot be listed."""

    def names(self, prefix: str = "") -> list[str]:
        raise StorageError("the directory cannot be listed.")


def written_part(
    folder: Path, value: float, kind: type[LocalDirectory] = LocalDirectory
) -> tuple[str, str]:
    """The record and the problem of cut 1 by a new process whose rows have `value`."""
    tables, crashes = TableRegistry(1), CrashReport()
    tables.register([BASE])
    (table,) = tables.all_sparse()
    table.apply(table.route(np.arange(10)), np.full((10, WIDTH), value, np.float32), 0.1)
    reported: list[tuple[str, str]] = []
    has_reported = threading.Event()

    def report(number: int, record: str, problem: str) -> PartOutcome:
        reported.append((record, problem))
        has_reported.set()
        return PartOutcome.GIVEN_UP if problem else PartOutcome.UNKNOWN

    settings = Settings(kind(folder))
    upkeep = Upkeep(tables.all_sparse, Meters(), lambda: 0, lambda: 0)
    cutting = Cutting(settings, tables, upkeep, crashes, report)
    cutting.freeze(1, {"participants": []})
    assert has_reported.wait(WAIT_S)
    assert cutting.wait(WAIT_S)
    assert crashes.error is None
    return reported[0]


def test_a_part_that_the_former_process_wrote_is_neither_replaced_nor_deleted(
    tmp_path: Path,
) -> None:
    former, _ = written_part(tmp_path, 1.0)
    files = {path: path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file()}

    record, problem = written_part(tmp_path, 2.0)

    assert former
    assert (record, problem) == ("", "the former process has written part 0 of this cut.")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file()} == files


def test_a_directory_that_cannot_be_listed_costs_the_cut_and_not_the_pserver(
    tmp_path: Path,
) -> None:
    assert written_part(tmp_path, 1.0, Unlisted) == ("", "the directory cannot be listed.")
