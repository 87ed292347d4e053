"""Gradients that a caller gives away are not copied, and never written to: sums are new arrays."""

from __future__ import annotations

import numpy as np
import pytest

from psrt.communicator.async_.gradient_queue import Merged
from psrt.communicator.async_.merge_queue import MergeQueue
from psrt.communicator.requests import Copies
from psrt.core.tensors import SelectedRows

LONG_S = 30.0
IDS = np.array([3, 8], np.int64)


def dense(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def rows(value: float) -> SelectedRows:
    return SelectedRows(IDS, np.full((2, 1), value, np.float32), unique=True)


def put(queue: MergeQueue, w: np.ndarray, emb: SelectedRows) -> None:
    assert queue.put({"w": w, "emb": emb}, {}, LONG_S)


def take(queue: MergeQueue) -> Merged:
    merged = queue.take()
    assert merged is not None
    return merged


def test_one_alone_leaves_as_the_array_it_is() -> None:
    queue = MergeQueue(1, 1, 0.0)
    for _ in range(3):  # arrays of sent groups are not used again
        w, emb = dense(1, 2), rows(1)
        put(queue, w, emb)
        merged = take(queue)
        found = merged.gradients()
        queue.sent(merged)

        assert found["w"] is w
        assert np.shares_memory(found["emb"].values, emb.values)
        np.testing.assert_array_equal(w, dense(1, 2))


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("given", [False, True])
def test_several_are_merged_and_stay_as_they_were(given: bool, average: bool) -> None:
    queue = MergeQueue(4, 4, 0.0, average, copies=None if given else Copies())
    parts = [(dense(1, -1), rows(1)), (dense(2, -2), rows(2)), (dense(3, -3), rows(3))]
    for part in parts:
        put(queue, *part)

    found = take(queue).gradients()

    of = 3 if average else 1
    np.testing.assert_array_equal(found["w"], dense(6, -6) / of)
    np.testing.assert_array_equal(found["emb"].values, np.full((2, 1), 6 / of, np.float32))
    for number, (w, emb) in enumerate(parts, 1):
        np.testing.assert_array_equal(w, dense(number, -number))
        np.testing.assert_array_equal(emb.values, rows(number).values)
