"""Chains of cuts: every complete one restores what pservers held, to the bit, also once merged."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from psrt.coordinator.retention import Retention
from psrt.core.errors import ErrorCode, StorageError
from psrt.core.specs import TableSpec
from psrt.pserver.checkpoints import (
    SavedCut,
    compact,
    complete_cuts,
    files_by_cut,
    find_cut,
    saved_cut,
)
from psrt.storage.local_directory import LocalDirectory
from tests.support.chains import ChainedPservers, Fate, all_state, registered, specs_of
from tests.support.frozen import BASE, SPARSE, pushes_of

KINDS = ["adagrad", "counted", "growing", "of float16", "with a life"]
Specs = list[list[TableSpec]]


@contextmanager
def pservers(folder: Path, specs: Specs, **options: Any) -> Iterator[ChainedPservers]:
    made = ChainedPservers(LocalDirectory(folder), specs, **options)
    try:
        yield made
    finally:
        made.close()


def opened(folder: Path, number: int | str) -> SavedCut:
    return find_cut(LocalDirectory(folder), str(number))


def restored(folder: Path, number: int, specs: Specs) -> Any:
    cut = opened(folder, number)
    return all_state([registered(each, cut) for each in specs])


def bases_of(folder: Path) -> dict[int, tuple[int, ...]]:
    return {n: opened(folder, n).bases for n in complete_cuts(LocalDirectory(folder))}


def part_bases(folder: Path, number: int) -> list[int]:
    return [part["base"] for part in opened(folder, number).parts]


# --- which cut continues which --------------------------------------------------------------------


def test_a_full_cut_begins_each_chain(tmp_path: Path) -> None:
    pushes = pushes_of(1, 6)
    with pservers(tmp_path, specs_of(BASE), full_every=3) as job:
        for push in pushes:
            job.push(push)
            job.cut()

    assert bases_of(tmp_path) == {1: (), 2: (1,), 3: (2,), 4: (), 5: (4,), 6: (5,)}


def test_without_increments_every_cut_is_full_and_no_change_is_recorded(tmp_path: Path) -> None:
    with pservers(tmp_path, specs_of(BASE), full_every=1) as job:
        job.cut()
        job.cut()
        tables = job.registries[0].all_sparse()

    assert bases_of(tmp_path) == {1: (), 2: ()}
    assert [stripe._recorder._row_marks for stripe in tables[0]._stripes] == [None, None]


def test_no_part_continues_a_cut_that_was_given_up(tmp_path: Path) -> None:
    specs, pushes = specs_of(BASE), pushes_of(2, 4)
    with pservers(tmp_path, specs) as job:
        for push, fate in zip(pushes, [*(Fate.COMPLETE, Fate.GIVEN_UP) * 2], strict=True):
            job.push(push)
            job.cut(fate)
        job.cut()

    assert bases_of(tmp_path) == {1: (), 3: (1,), 5: (3,)}
    assert restored(tmp_path, 5, specs) == job.states[5]


def test_a_pserver_that_does_not_know_what_became_of_its_part_writes_a_full_one(
    tmp_path: Path,
) -> None:
    specs, pushes = specs_of(BASE), pushes_of(3, 3)
    with pservers(tmp_path, specs) as job:
        for push, fate in zip(pushes, [Fate.COMPLETE, Fate.UNKNOWN, Fate.COMPLETE], strict=True):
            job.push(push)
            job.cut(fate)

    assert part_bases(tmp_path, 3) == [2, 0]
    assert opened(tmp_path, 3).bases == (2,)
    assert restored(tmp_path, 3, specs) == job.states[3]


def test_a_new_process_begins_with_a_full_part(tmp_path: Path) -> None:
    specs = specs_of(BASE)
    with pservers(tmp_path, specs) as job:
        job.push(pushes_of(4, 1)[0])
        job.cut()
    with pservers(tmp_path, specs) as job:
        job.cut()

    assert bases_of(tmp_path) == {1: (), 2: ()}


def test_a_table_that_is_registered_later_is_whole_in_its_first_cut(tmp_path: Path) -> None:
    specs = specs_of(BASE)
    with pservers(tmp_path, [[dense] for dense, _ in specs]) as job:
        job.cut()
        for tables, (_, sparse) in zip(job.registries, specs, strict=True):
            tables.register([sparse])
        job.push(pushes_of(5, 1)[0])
        state = all_state(job.registries)
        job.cut()

    assert bases_of(tmp_path) == {1: (), 2: (1,)}
    kinds = {
        table["facts"]["table"]: table["facts"]["kind"]
        for part in opened(tmp_path, 2).parts
        for file in part["files"]
        for table in file["tables"]
    }
    assert kinds == {"w.0": "delta", "w.1": "delta", "emb": "full"}
    assert restored(tmp_path, 2, specs) == state


# --- histories ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", KINDS)
def test_every_kept_cut_restores_what_pservers_held_and_so_does_a_merged_one(
    tmp_path: Path, kind: str, seed: int
) -> None:
    specs, draw = specs_of(SPARSE[kind]), random.Random(f"{kind} {seed}")
    pushes = pushes_of(seed, 14, batch=48, known=100)
    retention = Retention(draw.randint(1, 3), draw.choice([0, 4]))
    with pservers(tmp_path, specs, full_every=draw.randint(2, 5), retention=retention) as job:
        for push in pushes:
            job.push(push)
            if draw.random() < 0.3:
                job.drop(push.ids[:10])
            if draw.random() < 0.6:
                job.cut(draw.choice([*Fate, Fate.COMPLETE]))

    kept = complete_cuts(LocalDirectory(tmp_path))
    assert {base for bases in bases_of(tmp_path).values() for base in bases} <= set(kept)
    for number in kept:
        assert restored(tmp_path, number, specs) == job.states[number]
    for number in draw.sample(kept, len(kept)):
        compact(opened(tmp_path, number))
        assert opened(tmp_path, number).bases == ()
        assert all(restored(tmp_path, each, specs) == job.states[each] for each in kept)


def test_a_cut_restores_into_another_number_of_pservers(tmp_path: Path) -> None:
    specs = specs_of(SPARSE["adagrad"])
    with pservers(tmp_path, specs) as job:
        for push in pushes_of(6, 3):
            job.push(push)
            job.cut()

    for count in (1, 4):
        assert restored(tmp_path, 3, specs_of(SPARSE["adagrad"], count)) == job.states[3]


# --- compaction -----------------------------------------------------------------------------------


@pytest.fixture
def three(tmp_path: Path) -> ChainedPservers:
    """Cuts 1 to 3 in one chain."""
    with pservers(tmp_path, specs_of(BASE)) as job:
        for push in pushes_of(7, 3):
            job.push(push)
            job.drop(push.ids[:20])
            job.cut()
    return job


def test_a_merged_cut_needs_no_other_and_keeps_its_facts(
    three: ChainedPservers, tmp_path: Path
) -> None:
    before = opened(tmp_path, 3)
    read: list[int] = []

    assert compact(before, read.append)

    after = opened(tmp_path, 3)
    assert [len(chain) for chain in after.chains] == [1, 1]
    names = ("job", "round", "step", "participants", "index")
    assert [[part[n] for n in names] for part in after.parts] == [
        [part[n] for n in names] for part in before.parts
    ]
    assert after.manifest["positions"] == before.manifest["positions"]
    assert sum(read) > 0
    for number in (1, 2):
        for name in files_by_cut(LocalDirectory(tmp_path))[number]:
            (tmp_path / name).unlink()
    assert restored(tmp_path, 3, specs_of(BASE)) == three.states[3]
    list(after.verify())


def test_a_full_cut_stays_as_it_is_but_for_leftovers(
    three: ChainedPservers, tmp_path: Path
) -> None:
    before = sorted(tmp_path.rglob("*"))
    (tmp_path / "cut-00000001" / "full-0.json").write_text("of a compaction that was ended")

    assert not compact(opened(tmp_path, 1))

    assert sorted(tmp_path.rglob("*")) == before


def test_only_the_files_of_the_merged_cut_are_left_in_its_folder(
    three: ChainedPservers, tmp_path: Path
) -> None:
    compact(opened(tmp_path, 3))

    folder = tmp_path / "cut-00000003"
    assert sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()) == [
        *("full-0.json", "full-0/dense.arrays", "full-0/table-0.arrays"),
        *("full-1.json", "full-1/dense.arrays", "full-1/table-0.arrays", "manifest.json"),
    ]


def test_rows_that_are_missing_end_a_compaction_and_the_cut_stays(
    three: ChainedPservers, tmp_path: Path
) -> None:
    cut = opened(tmp_path, 3)
    rows = next(t for t in cut.parts[0]["files"][1]["tables"])["facts"]
    rows["rows"] += 1

    with pytest.raises(StorageError, match=r"part-0/table-0.arrays is damaged: table 'emb' has"):
        compact(cut)

    assert restored(tmp_path, 3, specs_of(BASE)) == three.states[3]


# --- damage ---------------------------------------------------------------------------------------


def files_of_chain(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.glob("cut-*/**/*") if p.is_file())


def damages(data: bytes, draw: random.Random) -> Iterator[bytes]:
    """Bits flipped, and the file cut, at places all over the file."""
    places = {0, len(data) - 1, *(draw.randrange(len(data)) for _ in range(12))}
    for at in sorted(places):
        yield data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1 :]
        yield data[:at]


def test_any_damage_of_any_file_of_a_chain_is_found_and_its_file_named(
    three: ChainedPservers, tmp_path: Path
) -> None:
    draw, names = random.Random(8), files_of_chain(tmp_path)
    assert len(names) == 21
    for name in names:
        path = tmp_path / name
        whole = path.read_bytes()
        for data in damages(whole, draw):
            path.write_bytes(data)
            with pytest.raises(StorageError) as found:
                list(opened(tmp_path, 3).verify())
            assert found.value.code is ErrorCode.FILE_DAMAGED
            assert f"{name} is damaged" in found.value.message
        path.write_bytes(whole)


def test_a_missing_file_of_a_chain_is_named(three: ChainedPservers, tmp_path: Path) -> None:
    for name in files_of_chain(tmp_path):
        path = tmp_path / name
        whole = path.read_bytes()
        path.unlink()
        if name != "cut-00000003/manifest.json":  # without it there is no cut 3
            with pytest.raises(StorageError, match=f"{name} does not exist") as found:
                list(opened(tmp_path, 3).verify())
            assert found.value.code is ErrorCode.FILE_MISSING
        path.write_bytes(whole)


def test_a_part_that_continues_no_earlier_cut_is_damaged(
    three: ChainedPservers, tmp_path: Path
) -> None:
    manifest = json.loads((tmp_path / "cut-00000003" / "manifest.json").read_text())
    assert manifest["bases"] == [2]
    cut = opened(tmp_path, 3)
    record = cut.parts[0] | {"base": 9}

    with pytest.raises(StorageError, match="continues cut 9, which is not an earlier one"):
        saved_cut._chain(cut.directory, 3, 0, {3: (record,)})
