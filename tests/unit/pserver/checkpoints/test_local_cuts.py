"""Local cuts and their files: a pserver restores what its tables held at the last one."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from psrt.core import failpoints
from psrt.core.errors import ErrorCode, StorageError
from psrt.core.specs import SparseTableSpec, to_plain
from psrt.pserver.checkpoints import LocalCut, LocalCuts, delta_files, find_cut, served_job
from psrt.pserver.checkpoints.served_job import RecoveredPart
from psrt.pserver.frozen import FrozenPages
from psrt.pserver.tables import TableRegistry
from psrt.storage.directory import contents
from psrt.storage.local_directory import LocalDirectory
from tests.support.chains import ChainedPservers, all_state, drop_rows, registered, specs_of
from tests.support.frozen import BASE, RATE, SPARSE, Push, apply, pushes_of

NAME, TABLES = "host-6170", 9


class DeltaPserver:
    """The tables of one pserver, and the local cuts that its processes write."""

    def __init__(self, folder: Path, spec: SparseTableSpec = BASE, process: int = 1) -> None:
        self.directory = LocalDirectory(folder)
        (self.specs,) = specs_of(spec, 1)
        self.tables = registered(self.specs)
        self.process = process
        self.cuts = LocalCuts[int]("deltas", self.tables)
        if process == 1:
            served_job.record(self.directory, NAME, TABLES)

    def push(self, *pushes: Push) -> None:
        for push in pushes:
            apply(self.tables.all_sparse()[0], [push])
            block = self.tables.dense("w.0")
            block.apply(np.full(60, push.gradients[0, 0], np.float32), RATE)

    def drop(self, ids: np.ndarray) -> None:
        drop_rows(self.tables.all_sparse()[0], ids)

    def take(self, is_full: bool = False) -> LocalCut[int]:
        specs = [to_plain(spec) for spec in self.specs]
        state = {"index": 0, "process": self.process, "incarnation": TABLES, "specs": specs}
        return self.cuts.take({**state, "state": {"cut": 0}}, 0, is_full)

    def write(self, cut: LocalCut[int] | None = None) -> int:
        cut = cut or self.take()
        size = delta_files.write(self.directory, NAME, cut)
        self.cuts.confirm(cut)
        return size

    def found(self) -> RecoveredPart | None:
        return served_job.find(self.directory, NAME)

    def restored(self) -> TableRegistry:
        recovered = self.found()
        assert recovered is not None
        return registered(recovered.specs, recovered.cut)

    def restart(self) -> DeltaPserver:
        """Another process, with the tables that this one has left on disk."""
        recovered, folder = self.found(), Path(self.directory.location)
        assert recovered is not None
        other = DeltaPserver(folder, process=recovered.process + 1)
        other.specs = self.specs
        other.tables = registered(recovered.specs, recovered.cut)
        other.cuts = LocalCuts[int]("deltas", other.tables, recovered.newest)
        return other

    def records(self) -> list[str]:
        return [name for name in self.directory.names("deltas-") if name.endswith(".json")]


def state_of(tables: TableRegistry) -> Any:
    return all_state([tables])


@pytest.mark.parametrize("kind", SPARSE)
def test_local_cuts_restore_every_kind_of_table(tmp_path: Path, kind: str) -> None:
    pserver, pushes = DeltaPserver(tmp_path, SPARSE[kind]), pushes_of(3, 12)
    for number in range(3):
        pserver.push(*pushes[4 * number : 4 * number + 3])
        pserver.drop(pushes[0].ids[number::9])
        cut = pserver.take()
        expected = state_of(pserver.tables)
        pserver.push(pushes[4 * number + 3])  # while it is written
        pserver.write(cut)
        assert cut.is_full == (number == 0)

    assert state_of(pserver.restored()) == expected


def test_a_local_cut_has_what_changed_since_the_last_one(tmp_path: Path) -> None:
    pserver, (first, second, *_) = DeltaPserver(tmp_path), pushes_of(3, 8)
    pserver.push(first, second)
    large = pserver.write()
    few = Push(second.ids[:5], second.gradients[:5], second.counts[:5], 99)
    pserver.push(few)
    cut = pserver.take()

    (table,) = cut.sparse
    rows = sum(len(page["rows"]) for page in table.pages() if "rows" in page)
    pserver.cuts.give_up(cut)

    assert rows == 5
    assert pserver.write() < large


def test_what_was_not_written_is_in_the_next_local_cut(tmp_path: Path) -> None:
    pserver, pushes = DeltaPserver(tmp_path), pushes_of(4, 9)
    pserver.push(*pushes[:3])
    pserver.write()
    pserver.push(*pushes[3:6])
    pserver.cuts.give_up(pserver.take())
    pserver.push(*pushes[6:])
    pserver.write()

    assert pserver.records() == [f"deltas-{NAME}/00000001.json", f"deltas-{NAME}/00000003.json"]
    assert state_of(pserver.restored()) == state_of(pserver.tables)


def test_a_table_that_cannot_be_frozen_ends_the_local_cut(tmp_path: Path) -> None:
    pserver = DeltaPserver(tmp_path)
    pserver.push(*pushes_of(4, 2))
    frozen = pserver.tables.all_sparse()[0].freeze(consumer="deltas")
    with pytest.raises(Exception, match="is frozen already"):
        pserver.take()
    frozen.close()

    pserver.write()

    assert state_of(pserver.restored()) == state_of(pserver.tables)


def test_a_full_local_cut_stands_for_all_before_it(tmp_path: Path) -> None:
    pserver, pushes = DeltaPserver(tmp_path), pushes_of(5, 12)
    for number in range(4):
        pserver.push(*pushes[3 * number : 3 * number + 3])
        pserver.drop(pushes[number].ids[::5])
        pserver.write(pserver.take(is_full=number == 2))
    delta_files.remove(pserver.directory, NAME, 2)

    assert len(pserver.records()) == 2
    assert state_of(pserver.restored()) == state_of(pserver.tables)


def test_a_second_process_continues_what_the_first_one_wrote(tmp_path: Path) -> None:
    first, pushes = DeltaPserver(tmp_path), pushes_of(6, 12)
    for number in range(2):
        first.push(*pushes[3 * number : 3 * number + 3])
        first.write()
    second = first.restart()
    assert state_of(second.tables) == state_of(first.tables)

    second.push(*pushes[6:9])
    cut = second.take()
    assert (cut.number, cut.is_full) == (3, True)
    second.write(cut)
    second.push(*pushes[9:])
    second.write()

    assert state_of(second.restored()) == state_of(second.tables)


# --- with cuts of the job ---


class Both:
    """A job of two pservers with cuts; the first one also writes local cuts."""

    def __init__(self, folder: Path, spec: SparseTableSpec, full_every: int) -> None:
        self.directory = LocalDirectory(folder)
        specs = specs_of(spec)
        self.job = ChainedPservers(self.directory, specs, full_every)
        self.specs, self.tables = specs[0], self.job.registries[0]
        self.cuts = LocalCuts[int]("deltas", self.tables)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["adagrad", "counted", "growing", "with a life"])
def test_local_cuts_and_cuts_of_the_job_in_any_order(tmp_path: Path, kind: str, seed: int) -> None:
    """A local cut is taken, and other things happen before it is written."""
    draw, both = random.Random(f"{kind} {seed}"), Both(tmp_path, SPARSE[kind], full_every=3)
    base, contained, expected = 0, 0, None
    behind: list[tuple[int, list[FrozenPages]]] = []
    taken: tuple[LocalCut[int], Any] | None = None
    for push in pushes_of(seed, 60, batch=40):
        match draw.randrange(6):
            case 0 if taken is None:
                taken = both.cuts.take({}, 0), state_of(both.tables)
            case 1 if taken is not None:
                cut, state = taken
                pages = [FrozenPages(each.meta, list(each.pages())) for each in cut.tables]
                both.cuts.confirm(cut)
                taken = None
                if cut.number > contained:
                    behind.append((cut.number, pages))
                    expected = state
            case 2:
                state, newest = state_of(both.tables), both.cuts.newest
                base, contained = both.job.cut(), newest
                behind = [each for each in behind if each[0] > contained]
                expected = expected if behind else state
            case _:
                both.job.push(push)
    both.job.close()

    assert base
    assert state_of(_restored(both, base, [pages for _, pages in behind])) == expected


def _restored(both: Both, base: int, behind: Sequence[Sequence[FrozenPages]]) -> TableRegistry:
    tables = registered(both.specs, find_cut(both.directory, str(base)))
    for block, rows in behind:
        tables.all_sparse()[0].restore([rows])
        if block.pages:
            tables.dense("w.0").restore([block])
    return tables


# --- records that belong together ---


def record(process: int, number: int, continues: int) -> dict[str, Any]:
    return {"process": process, "number": number, "continues": continues}


FULL_1, AT_2, AT_3 = record(1, 1, 0), record(1, 2, 1), record(1, 3, 2)


@pytest.mark.parametrize(
    ("part", "records", "expected"),
    [
        (None, [], []),
        (None, [FULL_1, AT_2, AT_3], [1, 2, 3]),
        ((1, 0), [], []),
        ((1, 1), [FULL_1, AT_2, AT_3], [2, 3]),
        ((1, 2), [AT_2, AT_3], [3]),
        ((1, 3), [AT_2, AT_3], []),
        ((1, 2), [record(1, 4, 1)], [4]),  # 3 was given up, 2 not confirmed before the cut
        ((1, 1), [record(1, 3, 1), record(1, 4, 1)], [3, 4]),  # 3 is there, though not confirmed
        ((1, 1), [record(1, 3, 0), record(1, 4, 3)], [3, 4]),  # a full one replaces the part
        ((1, 8), [record(2, 9, 0), record(2, 10, 9)], [9, 10]),  # so does one of a new process
        ((2, 9), [record(1, 8, 7), record(2, 10, 9)], [10]),
        ((2, 9), [record(1, 8, 7)], []),
        (None, [FULL_1, AT_2, record(2, 3, 0), record(2, 4, 0)], [4]),
    ],
)
def test_what_is_restored_behind_a_part(
    part: tuple[int, int] | None, records: list[dict[str, Any]], expected: list[int]
) -> None:
    found = delta_files.behind(NAME, part, records)

    assert [each["number"] for each in found] == expected


@pytest.mark.parametrize(
    ("part", "records"),
    [
        (None, [AT_2]),
        (None, [FULL_1, AT_3]),
        ((1, 1), [AT_3]),
        ((1, 1), [record(1, 3, 0), record(1, 5, 4)]),
    ],
)
def test_a_missing_local_cut_is_named(
    part: tuple[int, int] | None, records: list[dict[str, Any]]
) -> None:
    with pytest.raises(StorageError, match=rf"deltas-{NAME}/0000000\d.json") as caught:
        delta_files.behind(NAME, part, records)
    assert caught.value.code is ErrorCode.FILE_DAMAGED


# --- damage and crashes ---


def written(folder: Path) -> DeltaPserver:
    pserver, pushes = DeltaPserver(folder), pushes_of(7, 9)
    for number in range(3):
        pserver.push(*pushes[3 * number : 3 * number + 3])
        pserver.write()
    return pserver


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("file", [".json", "/dense.arrays", "/table-0.arrays"])
@pytest.mark.parametrize("place", [0.0, 0.3, 0.6, 0.999, "shorter", "missing"])
def test_damage_of_any_file_is_found_and_named(
    tmp_path: Path, number: int, file: str, place: float | str
) -> None:
    """A dense block is whole in each file, so that only the last one is read."""
    pserver = written(tmp_path)
    name = f"deltas-{NAME}/{number:08d}{file}"
    path = tmp_path / name
    data = bytearray(contents(pserver.directory, name))
    if place == "missing":
        path.unlink()
    elif place == "shorter":
        path.write_bytes(data[:-1])
    else:
        data[int(len(data) * float(place))] ^= 0x40
        path.write_bytes(data)

    if place == "missing" and file == ".json" and number == 3:
        assert len(pserver.restored()) == 2  # as if it had not been completed
        return
    if "dense" in file and number < 3:
        assert state_of(pserver.restored()) == state_of(pserver.tables)
        return
    with pytest.raises(StorageError) as caught:
        pserver.restored()
    assert f"deltas-{NAME}/" in caught.value.message


@pytest.mark.parametrize("point", ["delta.taken", "delta.before_record"])
def test_a_local_cut_that_was_not_completed_is_ignored_and_logged(
    tmp_path: Path, point: str, caplog: pytest.LogCaptureFixture
) -> None:
    pserver = written(tmp_path)
    before = state_of(pserver.tables)
    pserver.push(*pushes_of(8, 2))
    failpoints.arm(f"{point}=fail")
    try:
        with pytest.raises(StorageError):
            pserver.write()
    finally:
        failpoints.arm("")

    assert state_of(pserver.restored()) == before
    assert ("local cut 4 of host-6170 was not completed" in caplog.text) == ("record" in point)


def test_local_cuts_of_other_tables_are_not_restored(tmp_path: Path) -> None:
    written(tmp_path)
    served_job.record(LocalDirectory(tmp_path), NAME, TABLES + 1)

    assert served_job.find(LocalDirectory(tmp_path), NAME) is None


def test_an_ended_job_leaves_no_local_cuts(tmp_path: Path) -> None:
    pserver = written(tmp_path)

    served_job.forget(pserver.directory, NAME)

    assert pserver.directory.names() == []
