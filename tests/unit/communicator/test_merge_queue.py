"""Gradients that wait: sums, means, bounds, order, counts of steps; nothing is lost."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from psrt.communicator.async_.gradient_queue import Merged
from psrt.communicator.async_.merge_queue import EARLY_BYTES, MergeQueue
from psrt.communicator.requests import Copies
from psrt.core.errors import DeadlineError
from psrt.core.tensors import SelectedRows

LONG_S = 30.0


def queue_of(
    capacity: int = 4, max_merge: int = 4, linger_s: float = 0.0, average: bool = False
) -> MergeQueue:
    return MergeQueue(capacity, max_merge, linger_s, average, copies=Copies())


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


def test_a_step_is_unanswered_until_its_push_is_answered() -> None:
    queue = queue_of(max_merge=1)
    for _ in range(2):
        put(queue, w=dense(1.0))
    assert (queue.waiting, queue.unanswered) == (2, 2)

    first = take(queue)
    assert (queue.waiting, queue.unanswered) == (1, 2)
    queue.sent(first)

    assert (queue.waiting, queue.unanswered) == (1, 1)


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


def test_an_array_that_was_sent_keeps_its_values_as_long_as_somebody_holds_it() -> None:
    queue = queue_of(max_merge=1)
    put(queue, w=dense(1.0))
    merged = take(queue)
    held = merged.gradients()["w"]

    queue.sent(merged)
    del merged
    for value in range(2, 50):
        put(queue, w=dense(float(value)))
        queue.sent(take(queue))

    assert held.tolist() == [1]


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
            queue.sent(merged)

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
        while (merged := queue.take()) is not None:
            taken.set()
            assert pushed.wait(LONG_S)
            queue.sent(merged)

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


# --- averages -------------------------------------------------------------------------------------


def test_an_average_divides_by_the_number_of_gradients_merged() -> None:
    queue = queue_of(average=True)
    put(queue, w=dense(1.0, 2.0), b=dense(8.0))
    put(queue, w=dense(2.0, 6.0))

    merged = take(queue).gradients()

    np.testing.assert_array_equal(merged["w"], dense(1.5, 4.0))
    np.testing.assert_array_equal(merged["b"], dense(8.0))


def test_an_average_of_rows_divides_by_the_gradients_not_by_how_often_a_row_was_named() -> None:
    queue = queue_of(average=True)
    put(queue, emb=rows([7, -1], [[1.0], [3.0]]))
    put(queue, emb=rows([-1], [[5.0]]))

    merged = take(queue).gradients()["emb"]

    by_id = dict(zip(merged.ids.tolist(), merged.values[:, 0].tolist(), strict=True))
    assert by_id == {7: 0.5, -1: 4.0}


def test_an_average_of_one_leaves_the_arrays_of_the_trainer_alone() -> None:
    queue = queue_of(average=True)
    gradient = rows([7], [[1.0]])
    put(queue, emb=gradient)

    np.testing.assert_array_equal(take(queue).gradients()["emb"].values, [[1.0]])


# --- several senders ------------------------------------------------------------------------------


def test_two_pushes_under_way_are_both_waited_for() -> None:
    queue = queue_of(max_merge=1)
    put(queue, w=dense(1.0))
    put(queue, w=dense(2.0))
    first, second = take(queue), take(queue)

    queue.sent(second)
    drained_halfway = queue.drain(timeout_s=0.0)
    queue.sent(first)

    assert not drained_halfway
    assert queue.drain(timeout_s=0.0)
    assert (first.steps, second.steps) == (1, 1)


def test_several_senders_share_the_work_and_lose_nothing() -> None:
    queue = queue_of(capacity=3, max_merge=2)
    lock, sums = threading.Lock(), list[tuple[int, float]]()

    def send() -> None:
        while (merged := queue.take()) is not None:
            total = sum(float(part[0]) for part in merged.gradients().values())
            with lock:
                sums.append((merged.steps, total))
            queue.sent(merged)

    with ThreadPoolExecutor(3) as pool:
        senders = [pool.submit(send) for _ in range(3)]
        for step in range(500):
            put(queue, w=dense(float(step)), b=dense(1000.0))
        assert queue.drain(LONG_S)
        queue.close()
        for sender in senders:
            sender.result(LONG_S)

    assert sum(steps for steps, _ in sums) == 500
    assert sum(total for _, total in sums) == sum(range(500)) + 500 * 1000


# --- gradients that leave before their step has ended ---------------------------------------------

LARGE = EARLY_BYTES // 4
"""Elements of a gradient that is worth a push."""


def large(value: float) -> np.ndarray:
    return np.full(LARGE, value, np.float32)


def offer(queue: MergeQueue, version: int = 0, **gradients: np.ndarray | SelectedRows) -> None:
    for name, gradient in gradients.items():
        assert queue.offer(name, gradient, {(0, "w"): version})


def test_a_large_gradient_leaves_early_once_another_follows_it() -> None:
    queue = queue_of(max_merge=1)

    offer(queue, 5, w=large(1.0), b=dense(2.0))
    early = take(queue)
    put(queue, 5, w=large(1.0), b=dense(2.0))
    rest = take(queue)

    assert (list(early.groups), early.steps, early.versions) == (["w"], 0, {(0, "w"): 5})
    assert (list(rest.groups), rest.steps, rest.versions) == (["b"], 1, {(0, "w"): 5})


def test_small_gradients_wait_for_company() -> None:
    queue = queue_of(max_merge=1)
    with ThreadPoolExecutor(1) as pool:
        taking = pool.submit(take, queue)
        for name in ("w0", "w1", "w2"):
            offer(queue, **{name: large(1.0)[: LARGE // 2]})

        early = taking.result(LONG_S)

    assert sorted(early.groups) == ["w0", "w1"]


def test_what_was_offered_is_not_put_again() -> None:
    queue = queue_of()
    offer(queue, w=dense(1.0), emb=rows([3], [[2.0]]))

    put(queue, w=dense(1.0), emb=rows([3], [[2.0]]), b=dense(4.0))

    merged = take(queue)
    assert merged.steps == 1
    assert merged.gradients_merged == 3
    np.testing.assert_array_equal(merged.gradients()["w"], dense(1.0))


def test_an_offer_that_finds_no_room_waits_for_the_end_of_the_step() -> None:
    queue = queue_of(capacity=1, max_merge=1)
    put(queue, w=dense(1.0))

    refused = queue.offer("w", dense(2.0), {})
    first = take(queue)
    put(queue, w=dense(2.0))

    assert not refused
    assert first.gradients()["w"].tolist() == [1.0]
    assert take(queue).gradients()["w"].tolist() == [2.0]


def test_an_offer_made_twice_counts_once() -> None:
    queue = queue_of()
    offer(queue, w=dense(1.0))

    assert not queue.offer("w", dense(1.0), {})


def test_an_offer_after_the_end_of_the_queue_is_ignored() -> None:
    queue = queue_of()
    queue.close()

    assert not queue.offer("w", dense(1.0), {})


def test_gradients_that_may_still_be_merged_do_not_leave_early() -> None:
    queue = queue_of(capacity=4, max_merge=2)

    offer(queue, w=large(1.0), b=dense(1.0))
    put(queue, w=large(1.0), b=dense(1.0))
    offer(queue, w=large(2.0), b=dense(2.0))

    merged = take(queue)
    assert merged.gradients()["w"][0] == 3.0
    assert merged.steps == 1


def test_the_step_that_has_not_ended_is_not_counted_by_a_push_of_the_one_before() -> None:
    queue = queue_of(capacity=4, max_merge=1)
    put(queue, 1, w=dense(1.0), b=dense(1.0))
    offer(queue, 2, w=dense(2.0), b=dense(2.0))

    first = take(queue)
    put(queue, 2, w=dense(2.0), b=dense(2.0))
    second = take(queue)

    assert [(m.steps, m.versions[0, "w"]) for m in (first, second)] == [(1, 1), (1, 2)]


def test_draining_does_not_wait_for_a_step_that_never_ended() -> None:
    queue = queue_of()
    offer(queue, w=dense(1.0))

    assert queue.drain(timeout_s=0.0)


@pytest.mark.parametrize("senders", [1, 3])
def test_offers_from_several_threads_arrive_once_each(senders: int) -> None:
    queue, names = queue_of(capacity=2, max_merge=2), ["a", "b", "c", "d"]
    lock, sums, steps = threading.Lock(), dict.fromkeys(names, 0.0), list[int]()

    def send() -> None:
        while (merged := queue.take()) is not None:
            with lock:
                steps.append(merged.steps)
                for name, gradient in merged.gradients().items():
                    sums[name] += float(gradient[0])
            queue.sent(merged)

    with ThreadPoolExecutor(senders + 2) as pool:
        sending = [pool.submit(send) for _ in range(senders)]
        for step in range(200):
            made = {name: np.full(LARGE // 2, step, np.float32) for name in names}
            offers = [pool.submit(queue.offer, name, made[name], {}) for name in names[: step % 5]]
            for each in offers:
                each.result(LONG_S)
            put(queue, **made)
        assert queue.drain(LONG_S)
        queue.close()
        for each in sending:
            each.result(LONG_S)

    assert sums == dict.fromkeys(names, sum(range(200)))
    assert sum(steps) == 200
