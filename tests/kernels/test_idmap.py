"""The id map agrees with a dict, for any int64, through growth."""

from __future__ import annotations

import numpy as np
import pytest

from psrt.kernels.idmap import IdMap, cells_for

EXTREMES = np.array([0, -1, 2**63 - 1, -(2**63), 1], np.int64)


def test_ids_get_slots_in_order_of_insertion():
    ids = IdMap()

    assert ids.insert(EXTREMES).tolist() == [0, 1, 2, 3, 4]
    assert ids.find(EXTREMES[::-1].copy()).tolist() == [4, 3, 2, 1, 0]
    assert ids.keys[: ids.size].tolist() == EXTREMES.tolist()


def test_id_that_stands_twice_gets_one_slot():
    ids = IdMap()

    assert ids.insert(np.array([5, 5, 7, 5])).tolist() == [0, 0, 1, 0]
    assert len(ids) == 2


def test_unknown_id_is_found_nowhere():
    ids = IdMap()
    ids.insert(np.array([1, 2, 3]))

    assert ids.find(np.array([0, 4, -1])).tolist() == [-1, -1, -1]


def test_empty_batches_change_nothing():
    ids, none = IdMap(), np.empty(0, np.int64)

    assert ids.find(none).tolist() == ids.insert(none).tolist() == []
    assert len(ids) == 0


def test_read_only_ids_are_accepted():
    ids, batch = IdMap(), np.array([3, 4])
    batch.flags.writeable = False

    assert ids.insert(batch).tolist() == ids.find(batch).tolist() == [0, 1]


@pytest.mark.parametrize("spread", [200, 2**62])
def test_map_agrees_with_a_dict_through_many_growths(spread):
    rng = np.random.default_rng(spread)
    ids, expected = IdMap(), {}

    for size in (1, 10, 100, 1000, 10_000):
        batch = rng.integers(-spread, spread, size)
        want = [expected.setdefault(id_, len(expected)) for id_ in batch.tolist()]
        assert ids.insert(batch).tolist() == want

    assert len(ids) == len(expected)
    assert ids.find(np.array(list(expected))).tolist() == list(expected.values())


@pytest.mark.parametrize("size", [0, 1, 11, 12, 13, 96, 97, 10**6])
def test_reserved_room_holds_without_growing_and_leaves_a_quarter_empty(size):
    ids = IdMap(size)
    before = ids.slots

    ids.reserve(size)

    assert ids.slots is before
    assert size <= len(ids.keys) == cells_for(size) * 3 // 4


def test_nbytes_counts_both_arrays():
    ids = IdMap(100)

    assert ids.nbytes == ids.keys.nbytes + ids.slots.nbytes > 1000
