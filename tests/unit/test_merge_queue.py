"""Gradients that wait: sums, bounds, order, counts of steps; nothing is lost."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from psrt.communicator.merge_queue import Merged, MergeQueue
from psrt.core.errors import DeadlineError
from psrt.core.tensors import SelectedRows

LONG_S = 30.0


def queue_of(capacity: int = 4, max_merge: int = 4, linger_s: float = 0.0) -> MergeQueue:
    return MergeQueue(capacity, max_merge, linger_s)


def dense(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def rows(ids: list[int], values: list[list[float]], unique: bool = True) -> SelectedRows:
    return SelectedRows(np.array(ids, np.int64), np.array(values, np.float32), 0, unique)


def put(queue: MergeQueue, version: int = 0, **gradients: np.ndarray | SelectedRows) -> None:
    assert queue.put(gradients, {(0, "w"): version}, LONG_S)


def take(queue: MergeQueue) -> Merged:
    merged = queue.take()
    assert merged is not None
    return merged


def test_dense_gradients_are_summed_up_to_the_limit() -> None:
    queue = queue_of(capacity=8, max_merge=2)
    for value in (1.0, 2.0, 4.0):
        put(queue, w=dense(value, -value))

    first, second = take(queue), take(queue)

    np.testing.assert_array_equal(first.gradients()["w"], dense(3, -3))
    np.testing.assert_array_equal(second.gradients()["w"], dense(4, -4))


def test_rows_of_equal_ids_are_summed() -> None:
    queue = queue_of()
    put(queue, emb=rows([7, -1], [[1, 2], [3, 4]]))
    put(queue, emb=rows([-1, 9], [[10, 20], [5, 6]]))

    merged = take(queue).gradients()["emb"]

    assert merged.unique
    by_id = dict(zip(merged.ids.tolist(), merged.values.tolist(), strict=True))
    assert by_id == {7: [1, 2], -1: [13, 24], 9: [5, 6]}


def test_a_single_sparse_gradient_with_repeated_ids_leaves_with_distinct_ones() -> None:
    queue = queue_of()
    put(queue, emb=rows([3, 3], [[1], [2]], unique=False))

    merged = take(queue).gradients()["emb"]

    assert (merged.ids.tolist(), merged.values.tolist()) == ([3], [[3]])


def test_the_caller_may_overwrite_its_arrays_after_put() -> None:
    queue = queue_of()
    gradient, sparse = dense(1.0), rows([5], [[2.0]])
    put(queue, w=gradient, emb=sparse)

    gradient[:] = 99
    sparse.values[:] = 99
    sparse.ids[:] = 99

    merged = take(queue).gradients()
    assert merged["w"].tolist() == [1]
    assert (merged["emb"].ids.tolist(), merged["emb"].values.tolist()) == ([5], [[2]])


def test_arrays_are_used_again_only_after_their_push_is_over() -> None:
    queue = queue_of(max_merge=1)
    put(queue, w=dense(1.0))
    under_way = take(queue).gradients()["w"]

    put(queue, w=dense(2.0))
    before_the_next_take = under_way.copy()
    queued = take(queue).gradients()["w"]
    put(queue, w=dense(3.0))

    assert (before_the_next_take.tolist(), queued.tolist()) == ([1], [2])
    assert under_way.tolist() == [3]


def test_steps_are_counted_once_each_over_all_pushes() -> None:
    queue = queue_of(capacity=8, max_merge=2)
    for _ in range(5):
        put(queue, w=dense(1.0))

    assert [take(queue).steps for _ in range(3)] == [2, 2, 1]


def test_steps_without_a_gradient_are_counted_too() -> None:
    queue = queue_of(capacity=8, max_merge=2)
    put(queue, w=dense(1.0))
    put(queue)
    put(queue, b=dense(1.0))

    merged = take(queue)

    assert merged.steps == 3
    assert sorted(merged.gradients()) == ["b", "w"]


def test_a_push_carries_the_versions_its_oldest_gradient_was_computed_on() -> None:
    queue = queue_of(capacity=8, max_merge=2)
    for version in (11, 12, 13):
        put(queue, version, w=dense(1.0))

    assert [take(queue).versions[0, "w"] for _ in range(2)] == [11, 13]


def test_no_gradient_is_lost_or_counted_twice_between_two_threads() -> None:
    queue = queue_of(capacity=3, max_merge=2)
    sums: list[tuple[int, float]] = []

    def send() -> None:
        while (merged := queue.take()) is not None:
            sums.append((merged.steps, float(merged.gradients()["w"][0])))

    with ThreadPoolExecutor(1) as pool:
        sender = pool.submit(send)
        for step in range(500):
            put(queue, w=dense(float(step)))
        assert queue.drain(LONG_S)
        queue.close()
        sender.result(LONG_S)

    assert sum(steps for steps, _ in sums) == 500
    assert sum(total for _, total in sums) == sum(range(500))


def test_a_full_queue_holds_the_trainer_until_something_is_taken() -> None:
    queue = queue_of(capacity=1, max_merge=1)
    put(queue, w=dense(1.0))

    with ThreadPoolExecutor(1) as pool:
        blocked = pool.submit(put, queue, w=dense(2.0))
        first = take(queue).gradients()["w"]
        blocked.result(LONG_S)

    assert first.tolist() == [1]
    assert take(queue).gradients()["w"].tolist() == [2]


def test_a_queue_that_stays_full_fails_by_name_and_takes_nothing_of_that_step() -> None:
    queue = queue_of(capacity=1, max_merge=1)
    put(queue, w=dense(1.0))

    with pytest.raises(DeadlineError, match="send queue of w stayed full"):
        queue.put({"b": dense(1.0), "w": dense(2.0)}, {}, timeout_s=0.0)

    assert queue.waiting == 1


def test_a_lone_gradient_does_not_wait_for_company_for_ever() -> None:
    queue = queue_of(linger_s=0.001)
    put(queue, w=dense(1.0))

    assert take(queue).steps == 1


def test_enough_gradients_are_sent_without_lingering() -> None:
    queue = queue_of(capacity=4, max_merge=2, linger_s=LONG_S * 100)
    put(queue, w=dense(1.0))
    put(queue, w=dense(1.0))

    assert take(queue).steps == 2


def test_a_queue_too_small_for_a_full_merge_is_sent_without_lingering() -> None:
    queue = queue_of(capacity=1, max_merge=4, linger_s=LONG_S * 100)
    put(queue, w=dense(1.0))

    assert take(queue).steps == 1


def test_drain_ends_lingering_and_waits_for_the_push_under_way() -> None:
    queue = queue_of(linger_s=LONG_S * 100)
    put(queue, w=dense(1.0))
    taken, pushed = threading.Event(), threading.Event()

    def send() -> None:
        while queue.take() is not None:
            taken.set()
            assert pushed.wait(LONG_S)

    with ThreadPoolExecutor(2) as pool:
        sender = pool.submit(send)
        draining = pool.submit(queue.drain, LONG_S)
        assert taken.wait(LONG_S)
        assert not draining.done()
        pushed.set()
        assert draining.result(LONG_S)
        queue.close()
        sender.result(LONG_S)


def test_drain_gives_up_at_its_deadline() -> None:
    queue = queue_of()
    put(queue, w=dense(1.0))

    assert not queue.drain(timeout_s=0.0)
    assert queue.waiting == 1


def test_closing_ends_a_put_that_waits() -> None:
    queue = queue_of(capacity=1, max_merge=1)
    put(queue, w=dense(1.0))

    with ThreadPoolExecutor(1) as pool:
        blocked = pool.submit(queue.put, {"w": dense(2.0)}, {}, LONG_S)
        queue.close()

        assert blocked.result(LONG_S) is False


def test_closing_ends_a_sender_that_waits_for_work() -> None:
    queue = queue_of()

    with ThreadPoolExecutor(1) as pool:
        idle = pool.submit(queue.take)
        queue.close()

        assert idle.result(LONG_S) is None
