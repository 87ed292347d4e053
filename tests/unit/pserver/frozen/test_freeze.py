"""Beginnings and ends of freezes, and their costs meanwhile."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from psrt.core.errors import InternalError, TableError
from psrt.core.randomness import system_random
from psrt.pserver.eviction.policies import by_shrink
from psrt.pserver.eviction.sweeping import sweep
from psrt.pserver.frozen.frozen_records import FrozenRecords
from psrt.pserver.frozen.frozen_rows import FrozenRows
from psrt.pserver.tables.change_log import ChangeLog
from psrt.pserver.tables.sparse_table import SparseTable
from psrt.pserver.tables.two_part_table import TwoPartTable
from tests.support.frozen import (
    DENSE,
    HOUR,
    SIZE,
    SPARSE,
    apply,
    block_of,
    ids_of_pages,
    pushes_of,
    read,
    state_of,
    table_of,
)

PUSHES = pushes_of(1, 30)
KINDS = ["adagrad", "of float16", "counted", "with a life", "growing"]


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psrt.pserver.frozen.frozen_rows.PAGE_BYTES", 6_000)
    monkeypatch.setattr("psrt.pserver.frozen.frozen_records.SLICE_BYTES", 2_000)


def recorders_of(table: Any) -> list[Any]:
    parts = [table._short, table._long] if isinstance(table, TwoPartTable) else [table]
    return [stripe._recorder for part in parts for stripe in part._stripes]


@pytest.mark.parametrize("pages", [0, 2, 10_000])
@pytest.mark.parametrize("kind", KINDS)
def test_a_freeze_that_is_closed_anywhere_leaves_nothing_behind(kind: str, pages: int) -> None:
    table, twin = table_of(SPARSE[kind]), table_of(SPARSE[kind])
    apply(table, PUSHES[:10])
    apply(twin, PUSHES)

    with table.freeze() as frozen:
        walk = frozen.pages()
        for _, push in zip(range(pages), PUSHES[10:20], strict=False):
            next(walk, None)
            apply(table, [push])
    apply(table, PUSHES[10 + min(pages, 10) :])

    assert recorders_of(table) == [None] * len(recorders_of(table))
    assert state_of(table) == state_of(twin)
    assert table.freeze().is_open


@pytest.mark.parametrize("kind", KINDS)
def test_a_freeze_without_references_has_ended(kind: str) -> None:
    table = table_of(SPARSE[kind])
    apply(table, PUSHES[:10])
    walk: Iterator[Any] | None = table.freeze().pages()
    assert walk is not None
    next(walk)

    del walk
    gc.collect()
    apply(table, PUSHES[10:])

    assert recorders_of(table) == [None] * len(recorders_of(table))
    assert table.freeze().is_open


@pytest.mark.parametrize("kind", KINDS)
def test_pages_are_refused_after_the_end_of_a_freeze(kind: str) -> None:
    table = table_of(SPARSE[kind])
    apply(table, PUSHES)
    frozen = table.freeze()
    walk = frozen.pages()
    next(walk)

    frozen.close()

    for pages in (walk, frozen.pages()):
        with pytest.raises(InternalError, match="after the freeze of its table had ended"):
            list(pages)
    assert not frozen.is_open


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_has_one_freeze_at_a_time(kind: str) -> None:
    table = table_of(SPARSE[kind])
    frozen = table.freeze()

    with pytest.raises(InternalError, match="'emb' is frozen already"):
        table.freeze()
    frozen.close()

    assert table.freeze().is_open


@pytest.mark.parametrize("kind", KINDS)
def test_a_delta_needs_a_freeze_before_it(kind: str) -> None:
    table = table_of(SPARSE[kind])

    with pytest.raises(InternalError, match="no freeze that a delta could follow"):
        table.freeze(is_delta=True)
    with pytest.raises(InternalError, match="no freeze to follow"):
        block_of(DENSE["adam"]).freeze(is_delta=True)


def test_rows_created_after_a_freeze_are_no_part_of_it_and_not_copied() -> None:
    table = table_of(SPARSE["adagrad"])
    apply(table, PUSHES[:1])

    with table.freeze() as frozen:
        fresh = pushes_of(99, 1)[0]
        apply(table, [fresh])
        pages = list(frozen.pages())

        assert frozen.saved_rows == len(set(fresh.ids.tolist()) & set(PUSHES[0].ids.tolist()))
        assert sorted(ids_of_pages(pages)) == sorted(PUSHES[0].ids.tolist())


def test_copies_are_made_once_and_their_memory_ends_as_they_are_handed_out() -> None:
    table, push = table_of(SPARSE["adagrad"]), PUSHES[0]
    apply(table, [push])

    with table.freeze() as frozen:
        for _ in range(3):
            apply(table, [push])
        row_bytes = table.layout.row_bytes
        assert frozen.buffered_bytes == len(push.ids) * row_bytes
        assert frozen.saved_rows == len(push.ids)
        assert len(ids_of_pages(frozen.pages())) == len(push.ids)
        assert frozen.buffered_bytes == 0


def test_copies_that_fill_a_page_are_handed_out_first() -> None:
    table = table_of(SPARSE["adagrad"], stripes=2)
    apply(table, PUSHES[:20])
    last = table._stripes[1]

    with table.freeze() as frozen:
        apply(table, PUSHES[:20])
        before = frozen.buffered_bytes
        next(frozen.pages())

        assert last.rows > 100
        assert frozen.buffered_bytes < before


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["with a life", "growing"])
def test_rows_that_are_dropped_or_decayed_meanwhile_are_part_of_the_freeze(
    kind: str, seed: int
) -> None:
    rng, spec = np.random.default_rng(seed), SPARSE[kind]
    table, twin, restored = (table_of(spec) for _ in range(3))
    for each in table, twin:
        apply(each, PUSHES[:10])
    pages, pushes = [], list(PUSHES[10:])

    with table.freeze() as frozen:
        for page in frozen.pages():
            pages.append(page)
            match int(rng.integers(4)):
                case 0:
                    shrink = by_shrink(spec, table.time(0), HOUR)
                    shrink.least_score = float(rng.random())
                    sweep(table, shrink, lambda: None, decay=0.9)
                case 1:
                    table.sweep(0, 60, lambda rows: (rows[:, -2] > 0).astype(np.uint8))
                case 2 if isinstance(table, SparseTable):
                    table.drop(rng.choice(PUSHES[0].ids, 40))
                case _ if pushes:
                    apply(table, [pushes.pop()])
        restored.restore([(frozen.meta, pages)])
        assert frozen.saved_rows > 0

    assert state_of(restored) == state_of(twin)
    assert len(ids_of_pages(pages)) == twin.rows


@pytest.mark.parametrize("kind", ["adagrad", "adam_of_all_rows"])
def test_without_memory_for_copies_the_freeze_fails_and_the_push_does_not(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, twin = table_of(SPARSE[kind]), table_of(SPARSE[kind])
    apply(table, PUSHES[:10])
    apply(twin, PUSHES)
    frozen = table.freeze()

    def refuse(records: FrozenRecords, size: int = -1) -> None:
        raise MemoryError("no chunks")

    monkeypatch.setattr(FrozenRecords, "_next_chunk", refuse)
    monkeypatch.setattr(FrozenRecords, "save_slice", refuse)
    apply(table, PUSHES[10:])

    assert state_of(table) == state_of(twin)
    with pytest.raises(TableError, match=r"a freeze ended, .* \(no chunks\)"):
        list(frozen.pages())
    frozen.close()
    assert table.freeze().is_open


@pytest.mark.parametrize("kind", ["adagrad", "counted", "growing"])
def test_a_table_may_be_changed_by_a_restore_while_it_is_frozen(kind: str) -> None:
    spec = SPARSE[kind]
    table, other, twin, restored = (table_of(spec) for _ in range(4))
    apply(other, PUSHES[5:10])
    for each in table, twin:
        apply(each, PUSHES[:5])
    with other.freeze() as frozen:
        source = (frozen.meta, list(frozen.pages()))

    with table.freeze() as frozen:
        table.restore([source])
        restored.restore([(frozen.meta, list(frozen.pages()))])

    assert state_of(restored) == state_of(twin)
    assert table.rows > restored.rows


def test_an_update_that_fails_counts_as_a_change_of_all_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table, restored, sources = table_of(SPARSE["adagrad"]), table_of(SPARSE["adagrad"]), []
    apply(table, PUSHES[:3])
    table.track_changes()
    for is_delta in (False, True):
        with table.freeze(is_delta) as frozen:
            sources.append((frozen.meta, list(frozen.pages())))
            frozen.confirm()
        with monkeypatch.context() as patch:
            patch.setattr("psrt.kernels.tables.row_store.RowStore.count", refuse)
            with pytest.raises(MemoryError):
                apply(table, [PUSHES[0]])
    with table.freeze(is_delta=True) as frozen:
        sources.append((frozen.meta, list(frozen.pages())))

    restored.restore(sources)

    assert state_of(restored) == state_of(table)


def refuse(*args: object) -> None:
    raise MemoryError("refused")


def test_facts_of_a_freeze_are_those_of_the_table_at_that_instant() -> None:
    table = table_of(SPARSE["counted"], logs=True)
    apply(table, PUSHES[:7])
    assert isinstance(table, SparseTable)
    table.log(0, table.route(PUSHES[0].ids))
    expected = {"version": 7, "time": 19, "refused": table.refused, "hour": HOUR, "logged_to": 2}
    expected |= {"table": "emb", "kind": "full", "since": None, "rows": table.rows}

    with table.freeze() as frozen:
        apply(table, PUSHES[7:])

        assert expected.items() <= frozen.meta.items()


def test_a_change_log_has_other_positions_than_the_one_that_was_frozen() -> None:
    table, restored = (table_of(SPARSE["add"], logs=True) for _ in range(2))
    assert isinstance(restored, SparseTable)
    apply(table, PUSHES[:3])
    for trainer in range(4):
        table.log(trainer, table.route(PUSHES[0].ids))
    with table.freeze() as frozen:
        restored.restore([(frozen.meta, frozen.pages())])

    rows, position = restored.changed(0, table.logged_to)

    assert position == restored.logged_to != table.logged_to
    assert len(rows) == table.rows
    assert len(restored.changed(0, position)[0]) == 0


def restarted_with(log: ChangeLog, drawn: int, monkeypatch: pytest.MonkeyPatch) -> ChangeLog:
    """The log, in the range that is drawn."""
    monkeypatch.setattr(system_random, "randrange", lambda least, most: drawn)
    log.restart(3)
    return log


@pytest.mark.parametrize("ranges", [(5, 6), (6, 5)])
def test_a_reader_of_another_process_gets_every_row(
    monkeypatch: pytest.MonkeyPatch, ranges: tuple[int, int]
) -> None:
    """Two processes went on from position 3, one after the other, and left nothing durable."""
    killed, log = (restarted_with(ChangeLog(), drawn, monkeypatch) for drawn in ranges)
    for each in (killed, log):
        for _ in range(9):
            each.add(0, PUSHES[0].ids)

    assert log.since(1, 7) is None
    assert log.since(1, killed.end) is None
    assert log.since(1, log.end) is not None


def test_no_two_ranges_of_a_table_are_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter([7, 7, 8])
    monkeypatch.setattr(system_random, "randrange", lambda least, most: next(drawn))
    log = ChangeLog()
    log.restart(3)
    before = log.end

    log.restart(before)

    assert log.end > before


# --- dense tables ---


def test_a_block_is_copied_at_its_next_update_and_not_kept_after_the_end() -> None:
    table, ones = block_of(DENSE["adam"]), np.ones(SIZE, np.float32)
    table.apply(ones, 0.1)
    values, state = table._values, table._move.state
    frozen = table.freeze()
    (page,) = frozen.pages()

    table.apply(ones, 0.1)
    del page
    table.apply(ones, 0.1)
    frozen.close()

    assert len(values._memory) == len(state._memory) == 1
    assert not frozen.is_open
    with pytest.raises(InternalError, match="after the freeze of its table had ended"):
        list(frozen.pages())


def test_pages_of_a_block_stay_as_they_are_after_the_end_of_its_freeze() -> None:
    table, ones = block_of(DENSE["adam"]), np.ones(SIZE, np.float32)
    with table.freeze() as frozen:
        (page,) = frozen.pages()
    before = {name: each.copy() for name, each in page.items()}

    for _ in range(3):
        table.apply(ones, 0.1)

    assert all(page[name].tobytes() == before[name].tobytes() for name in before)


def test_a_frozen_table_is_read_as_it_goes_on() -> None:
    table, twin = table_of(SPARSE["adam"]), table_of(SPARSE["adam"])
    apply(twin, PUSHES)
    apply(table, PUSHES[:10])

    frozen = table.freeze()
    assert isinstance(frozen, FrozenRows)
    apply(table, PUSHES[10:])

    assert read(table, PUSHES[0].ids) == read(twin, PUSHES[0].ids)
