"""Rows by id against a dictionary: made, found, dropped, grown and shrunk in any order."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from psrt.core.errors import ErrorCode, TableError
from psrt.core.specs import Constant, Uniform
from psrt.kernels.lowlevel.hashing import mix64
from psrt.kernels.tables import leaves
from psrt.kernels.tables.initialize import encode, fill_rows
from psrt.kernels.tables.leaves import CELLS, COUNT, DEPTH, EMPTY, PREFIX
from psrt.kernels.tables.row_layout import ID_WORD, row_layout
from psrt.kernels.tables.row_store import RowStore, no_hints

WIDTH = 3
START = Uniform(-1.0, 1.0)
EXTREMES = np.array([0, -1, 2**63 - 1, -(2**63), 1], np.int64)


def store_of(initializer: Constant | Uniform = START, state_words: int = 2) -> RowStore:
    layout = row_layout(WIDTH, state_words)
    return RowStore(layout, (*encode(initializer), 7), np.full(state_words, 0.5, np.float32))


def touch(store: RowStore, ids: np.ndarray, *stamp: int) -> np.ndarray:
    found = no_hints(len(ids))
    store.touch(ids, np.arange(len(ids), dtype=np.int32), found, *stamp)
    return found


def read(store: RowStore, ids: np.ndarray) -> np.ndarray:
    out, order = np.empty((len(ids), WIDTH), np.float32), np.arange(len(ids), dtype=np.int32)
    store.read(ids, order, np.empty_like(order), out)
    return out


def add(store: RowStore, ids: np.ndarray, amount: float) -> None:
    """Each weight of the rows `ids`, which are distinct, goes up by `amount`."""
    found, at = touch(store, ids), store.layout.weights_at
    store.slab.rows[found, at : at + WIDTH] += amount


def drop(store: RowStore, ids: np.ndarray, page: int = 1000) -> None:
    """Forget these rows as a sweep does: page by page from the last slot on."""
    for end in range(store.rows, 0, -page):
        first = max(0, end - page)
        end = min(end, store.rows)
        store.drop(first, np.isin(store.ids(first, end), ids).astype(np.uint8))


def check_index(store: RowStore) -> None:
    """Every slot stands in one cell, of the leaf its hash leads to, with an unbroken way there, and
    its hash stands by it."""
    directory, cells, facts, hashes = store._index.arrays
    cells = cells[: store._index.cells]
    taken = cells[cells != EMPTY]
    assert sorted((taken & leaves.SLOTS).tolist()) == list(range(store.rows))
    used = np.unique(directory)
    assert used.tolist() == list(range(store._index.cells // CELLS))
    assert facts[used, COUNT].sum() == store.rows
    for leaf in used:
        entries = np.flatnonzero(directory == leaf)
        assert (entries & ((1 << facts[leaf, DEPTH]) - 1) == facts[leaf, PREFIX]).all()
        in_leaf = cells[leaf * CELLS : (leaf + 1) * CELLS]
        assert facts[leaf, COUNT] == np.count_nonzero(in_leaf != EMPTY)
    hashed = [int(mix64(id_)) for id_ in store.ids().view(np.uint64)]
    assert hashes[: store.rows].tolist() == [each & 0xFFFFFFFF for each in hashed]


def initial_rows(ids: np.ndarray) -> np.ndarray:
    out = np.empty((len(ids), WIDTH), np.float32)
    fill_rows(START, 7, ids, out)
    return out


def test_ids_get_slots_in_the_order_they_come_in() -> None:
    store = store_of()

    assert touch(store, EXTREMES).tolist() == [0, 1, 2, 3, 4]
    assert touch(store, EXTREMES[::-1].copy()).tolist() == [4, 3, 2, 1, 0]
    assert store.ids().tolist() == EXTREMES.tolist()


def test_an_id_that_stands_twice_gets_one_row() -> None:
    store = store_of()

    assert touch(store, np.array([5, 5, 7, 5])).tolist() == [0, 0, 1, 0]
    assert store.rows == 2


def test_a_new_row_is_header_initial_weights_and_first_state() -> None:
    store = store_of()

    touch(store, EXTREMES)

    rows, at = store.slab.rows[:5], store.layout.weights_at
    assert not rows[:, :ID_WORD].any()
    np.testing.assert_array_equal(rows[:, at : at + WIDTH], initial_rows(EXTREMES))
    np.testing.assert_array_equal(rows[:, store.layout.state_at :][:, :2], 0.5)


def test_reading_makes_no_row_and_shows_what_a_row_would_begin_with() -> None:
    store = store_of()

    np.testing.assert_array_equal(read(store, EXTREMES), initial_rows(EXTREMES))
    assert store.rows == 0


def test_an_update_is_counted_with_its_version_and_hour_and_looking_is_none() -> None:
    layout = row_layout(WIDTH, 0, optional=["seen"])
    store = RowStore(layout, (*encode(START), 7), np.empty(0, np.float32))

    touch(store, np.array([1, 2]), 3, 490_000)
    touch(store, np.array([2]), 2**31 + 4, 490_001)
    touch(store, np.array([1, 2]))

    headers = store.slab.rows[:2].view(np.int32)
    assert headers[:, :2].tolist() == [[3, 1], [4, 2]]
    assert headers[:, layout.seen_at].tolist() == [490_000, 490_001]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("spread", [30_000, 2**62])
def test_rows_agree_with_a_dictionary_through_growing_and_shrinking(seed: int, spread: int) -> None:
    rng = np.random.default_rng(seed)
    store, expected = store_of(Constant(0.0)), Counter[int]()
    for _ in range(25):
        if rng.random() < 0.3 and expected:
            known = np.array(list(expected))
            gone = rng.choice(known, int(len(known) * rng.random()), replace=False)
            drop(store, gone, page=int(rng.integers(1, 5000)))
            for id_ in gone.tolist():
                del expected[id_]
        else:
            ids = np.unique(rng.integers(-spread, spread, int(rng.integers(1, 5000))))
            rng.shuffle(ids)
            add(store, ids, 1.0)
            expected.update(ids.tolist())

    check_index(store)
    asked = np.concatenate([np.array(list(expected), np.int64), rng.integers(-spread, spread, 500)])
    wanted = np.array([expected.get(id_, 0) for id_ in asked.tolist()], np.float32)
    np.testing.assert_array_equal(read(store, asked), np.repeat(wanted[:, None], WIDTH, axis=1))
    assert sorted(store.ids().tolist()) == sorted(expected)


def test_hints_that_hold_are_kept() -> None:
    store, ids = store_of(), np.arange(100, dtype=np.int64)
    slots = touch(store, ids)
    found = slots.copy()

    store.find(ids, np.arange(100, dtype=np.int32), found)

    np.testing.assert_array_equal(found, slots)


@pytest.mark.parametrize("seed", range(4))
def test_hints_may_say_anything(seed: int) -> None:
    """Slots of others, of rows that have moved or are gone, and none at all."""
    rng, store, twin = np.random.default_rng(seed), store_of(), store_of()
    ids = rng.permutation(20_000).astype(np.int64)
    before = touch(store, ids[:15_000])
    touch(twin, ids[:15_000])
    for each in store, twin:
        drop(each, ids[5000:8000])
    hints = np.concatenate([before, rng.integers(-(2**31), 2**31, 5000).astype(np.int32)])
    hints[:1000] = rng.permutation(hints[:1000])
    order = rng.permutation(len(ids)).astype(np.int32)
    wanted, out, again = touch(twin, ids[order]), np.empty((2, len(ids), WIDTH), np.float32), None

    store.read(ids, order, found := hints[order], out[0])
    np.testing.assert_array_equal(out[0], read(twin, ids))
    store.find(ids, order, again := hints[order])
    np.testing.assert_array_equal(again, found)
    store.touch(ids, order, again, 1)

    np.testing.assert_array_equal(again, wanted)
    np.testing.assert_array_equal(store.ids(), twin.ids())
    check_index(store)


def test_the_remains_of_a_dropped_row_are_not_the_row() -> None:
    store, ids = store_of(), np.arange(10, dtype=np.int64)
    add(store, ids, 1.0)
    drop(store, ids[9:])
    found = np.array([9], np.int32)  # its id still stands there
    assert store.slab.rows.view(np.int64)[9, ID_WORD // 2] == 9

    store.find(ids[9:], np.zeros(1, np.int32), found)
    assert found.tolist() == [-1]
    out = np.empty((1, WIDTH), np.float32)
    store.read(ids[9:], np.zeros(1, np.int32), np.array([9], np.int32), out)

    np.testing.assert_array_equal(out, initial_rows(ids[9:]))


def test_leaves_grow_one_at_a_time_and_their_loads_are_spread() -> None:
    store, ids = store_of(), np.random.default_rng(1).integers(-(2**62), 2**62, 60_000)
    sizes = []
    for start in range(0, len(ids), 500):
        touch(store, ids[start : start + 500])
        sizes.append(store._index.cells // CELLS)

    grown = np.diff(sizes)
    assert sizes[-1] > 16
    assert grown.max() <= 4  # of 500 new ids; all leaves at once would be 8 and 16
    check_index(store)


def test_dropping_all_rows_leaves_one_leaf_and_gives_the_memory_back() -> None:
    store, ids = store_of(), np.arange(50_000, dtype=np.int64)
    touch(store, ids)
    nbytes = store.nbytes

    drop(store, ids)

    assert store.rows == 0
    assert store._index.cells == CELLS
    assert store.nbytes < nbytes / 50
    check_index(store)
    np.testing.assert_array_equal(read(store, ids), initial_rows(ids))


def test_ids_that_were_chosen_to_collide_are_refused_and_do_not_hang() -> None:
    store = store_of()

    with pytest.raises(TableError, match="share the lower half of their hash") as refused:
        touch(store, colliding())

    assert refused.value.code is ErrorCode.TABLE_FULL


def refuse_leaves(*args: object) -> None:
    raise MemoryError("no more leaves")


@pytest.mark.parametrize("reason", ["ids that collide", "no memory"])
def test_an_update_that_finds_no_room_leaves_rows_that_begin_as_ever(
    reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, known, others = store_of(), np.arange(100), np.arange(100, 9000)
    touch(store, known, 1)
    if reason == "no memory":
        monkeypatch.setattr("psrt.kernels.tables.id_index.IdIndex._new_leaf", refuse_leaves)
        pushed = np.concatenate([known, others])
    else:
        pushed = np.concatenate([known, others, colliding()])

    with pytest.raises((TableError, MemoryError)):
        touch(store, pushed, 2)
    monkeypatch.undo()

    ids, state = store.ids(), store.slab.rows[: store.rows, store.layout.state_at :].copy()
    assert store.rows > len(known)
    np.testing.assert_array_equal(read(store, ids), initial_rows(ids))
    np.testing.assert_array_equal(state[:, :2], 0.5)
    assert updates(store, len(known)).tolist() == [1] * len(known)
    assert not updates(store)[len(known) :].any()
    check_index(store)
    touch(store, np.concatenate([known, others]), 3)
    assert updates(store, len(known)).tolist() == [2] * len(known)
    check_index(store)


def test_an_index_whose_leaf_could_not_be_split_is_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, ids = store_of(), np.arange(9000)
    with monkeypatch.context() as patch:
        patch.setattr("psrt.kernels.tables.id_index.np.empty", refuse_leaves)
        with pytest.raises(MemoryError):
            store.touch(ids, np.arange(9000, dtype=np.int32), np.zeros(9000, np.int32))

    check_index(store)
    touch(store, ids)
    check_index(store)


def updates(store: RowStore, rows: int | None = None) -> np.ndarray:
    """Of the first `rows`: how many each has counted."""
    return store.slab.rows[: store.rows if rows is None else rows].view(np.int32)[:, 1].copy()


def colliding() -> np.ndarray:
    """More ids than one leaf holds, of which the hashes are alike in the lower half."""
    return unmixed((np.arange(CELLS, dtype=np.uint64) << np.uint64(32)) | np.uint64(0xABCDE))


def unmixed(hashed: np.ndarray) -> np.ndarray:
    """The ids whose `mix64` these are: each of its steps undone."""
    mask = (1 << 64) - 1

    def unshifted(x: int, by: int) -> int:
        y = x
        for _ in range(64 // by):
            y = x ^ (y >> by)
        return y

    def one(x: int) -> int:
        x = unshifted(x, 31) * pow(0x94D049BB133111EB, -1, 1 << 64) & mask
        x = unshifted(x, 27) * pow(0xBF58476D1CE4E5B9, -1, 1 << 64) & mask
        return unshifted(x, 30)

    return np.array([one(x) for x in hashed.tolist()], np.uint64).view(np.int64)
