"""The cache of trainers' id lists: keys, copies, limits and order of dropping."""

from __future__ import annotations

import numpy as np
import pytest

from psrt.communicator.requests import known_ids
from psrt.core import specs
from psrt.pserver.serving.id_list_cache import MOST_LISTS, IdListCache
from psrt.pserver.tables.sparse_table import SparseTable
from psrt.pserver.tables.stripe_router import RoutedIds

SPEC = specs.SparseTableSpec(
    "emb", 2, specs.Constant(0.0), specs.Add(), specs.ConstantRate(1.0), seed=1
)
TABLE = SparseTable(SPEC, stripes=3)
IDS = np.array([5, -9, 2**62, 7], np.int64)
COUNT = len(IDS)


def routed(first: int = 0) -> RoutedIds:
    return TABLE.route(IDS + first)


SIZE_BYTES = routed().nbytes


def test_a_list_comes_back_under_its_trainer_table_and_number_only() -> None:
    lists = IdListCache()

    assert lists.put(1, "emb", 99, routed())

    found = lists.get(1, "emb", 99)
    assert found is not None
    np.testing.assert_array_equal(found.ids, IDS)
    assert lists.get(0, "emb", 99) is None
    assert lists.get(1, "other", 99) is None
    assert lists.get(1, "emb", 98) is None


def test_a_cached_list_is_outside_the_memory_of_its_message() -> None:
    message, lists = IDS.copy(), IdListCache()
    lists.put(0, "emb", 1, TABLE.route(message))

    message[:] = 0

    found = lists.get(0, "emb", 1)
    assert found is not None
    np.testing.assert_array_equal(found.ids, IDS)


def test_a_cached_list_updates_the_rows_of_the_list_itself() -> None:
    table, lists = SparseTable(SPEC, stripes=3), IdListCache()
    gradients = np.arange(2 * COUNT, dtype=np.float32).reshape(COUNT, 2)
    lists.put(0, "emb", 1, table.route(IDS))

    for _ in range(2):
        found = lists.get(0, "emb", 1)
        assert found is not None
        table.apply(found, gradients, 1.0)

    out = np.empty((COUNT, 2), np.float32)
    table.read(table.route(IDS), out)
    np.testing.assert_array_equal(out, 2 * gradients)


def test_a_recalled_list_finds_its_rows_though_they_have_moved() -> None:
    lists, table, twin = IdListCache(), SparseTable(SPEC, 1), SparseTable(SPEC, 1)
    ones = np.ones((COUNT, 2), np.float32)
    for each in table, twin:
        each.apply(each.route(IDS), ones, 1.0)
    pulled = table.route(IDS)
    table.read(pulled, np.empty((COUNT, 2), np.float32))
    lists.put(0, "emb", 1, pulled)
    for each in table, twin:
        each.drop(IDS[: COUNT // 3])

    found = lists.get(0, "emb", 1)
    assert found is not None
    table.apply(found, ones, 1.0)
    twin.apply(twin.route(IDS), ones, 1.0)

    out, wanted = np.empty((2, COUNT, 2), np.float32)
    table.read(table.route(IDS), out)
    twin.read(twin.route(IDS), wanted)
    np.testing.assert_array_equal(out, wanted)
    assert table.rows == twin.rows == COUNT


def test_two_threads_that_recall_a_list_share_no_slots() -> None:
    lists = IdListCache()
    lists.put(0, "emb", 1, routed())

    one, other = lists.get(0, "emb", 1), lists.get(0, "emb", 1)

    assert one is not None
    assert other is not None
    assert not np.shares_memory(one.slots, other.slots)


def test_the_least_recently_used_lists_of_all_trainers_go_first() -> None:
    lists = IdListCache(limit_bytes=3 * SIZE_BYTES)
    for trainer in range(3):
        lists.put(trainer, "emb", 1, routed(trainer))
    lists.get(0, "emb", 1)

    lists.put(3, "emb", 1, routed(3))

    kept = [trainer for trainer in range(4) if lists.get(trainer, "emb", 1) is not None]
    assert kept == [0, 2, 3]
    assert lists.nbytes == 3 * SIZE_BYTES


def test_of_each_trainer_and_table_only_the_newest_lists_are_kept() -> None:
    lists = IdListCache()
    for trainer, table in ((0, "emb"), (1, "emb"), (0, "other")):
        for number in range(1, 10 * MOST_LISTS + 1):
            lists.put(trainer, table, number, routed(number))

    kept = [n for n in range(1, 10 * MOST_LISTS + 1) if lists.get(0, "emb", n) is not None]
    assert kept == list(range(9 * MOST_LISTS + 1, 10 * MOST_LISTS + 1))
    assert len(lists) == 3 * MOST_LISTS
    assert lists.nbytes == 3 * MOST_LISTS * SIZE_BYTES


def test_a_list_that_is_pulled_again_is_new_again() -> None:
    lists = IdListCache()
    for number in range(1, MOST_LISTS + 1):
        lists.put(0, "emb", number, routed(number))

    lists.put(0, "emb", 1, routed(1))
    lists.put(0, "emb", MOST_LISTS + 1, routed())

    assert lists.get(0, "emb", 1) is not None
    assert lists.get(0, "emb", 2) is None


def test_every_list_that_a_trainer_may_name_is_kept() -> None:
    assert MOST_LISTS >= 2 * known_ids.MOST_LISTS


def test_a_list_that_is_remembered_again_counts_once() -> None:
    lists = IdListCache()

    for _ in range(5):
        lists.put(0, "emb", 1, routed())

    assert len(lists) == 1
    assert lists.nbytes == SIZE_BYTES


def test_a_list_larger_than_the_limit_is_not_cached_and_drops_no_other() -> None:
    lists = IdListCache(limit_bytes=SIZE_BYTES)
    lists.put(0, "emb", 1, routed())

    is_kept = lists.put(0, "emb", 2, TABLE.route(np.arange(2 * COUNT, dtype=np.int64)))

    assert not is_kept
    assert lists.get(0, "emb", 1) is not None


@pytest.mark.parametrize("gone", [0, 1])
def test_a_trainer_that_has_completed_is_forgotten(gone: int) -> None:
    lists = IdListCache()
    for trainer in range(2):
        lists.put(trainer, "emb", 1, routed(trainer))

    lists.release(gone)

    assert lists.get(gone, "emb", 1) is None
    assert lists.get(1 - gone, "emb", 1) is not None
    assert lists.nbytes == SIZE_BYTES
