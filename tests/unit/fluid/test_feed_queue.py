"""Batches that a program's own threads push into a reader, and names that such programs use."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt.core.errors import DeadlineError, PsrtError
from psrt.fluid.executor import _as_lodtensor
from psrt.fluid.feeding.feed_queue import FeedQueue

BATCHES = [np.full((2, 3), number, np.float32) for number in range(5)]


def reader_and_sum() -> tuple[Any, Any]:
    reader = fluid.layers.py_reader(capacity=2, shapes=[(-1, 3)], dtypes=["float32"])
    return reader, fluid.layers.reduce_sum(fluid.layers.read_file(reader))


def pushed(batch: Any) -> fluid.LoDTensorArray:
    tensors = fluid.LoDTensorArray()
    tensors.append(_as_lodtensor(batch, fluid.CPUPlace()))
    return tensors


def push_all(queue: Any) -> None:
    for batch in BATCHES:
        queue.push(pushed(batch))
    queue.close()


def test_runs_take_batches_in_the_order_of_their_push_until_the_queue_is_closed() -> None:
    reader, total = reader_and_sum()
    exe, found = fluid.Executor(), list[float]()
    exe.run(fluid.default_startup_program())
    pusher = threading.Thread(target=push_all, args=(reader.queue,))
    pusher.start()

    found += [exe.run(fetch_list=[total])[0].item() for _ in BATCHES]
    with pytest.raises(fluid.core.EOFException):
        exe.run(fetch_list=[total])
    pusher.join()

    assert found == [batch.sum() for batch in BATCHES]


def test_a_batch_is_pushed_between_runs_without_a_thread() -> None:
    reader, total = reader_and_sum()
    exe = fluid.Executor()

    for batch in BATCHES:
        assert reader.queue.push(pushed(batch))
        assert exe.run(fetch_list=[total])[0].item() == batch.sum()


def test_each_replica_takes_a_pushed_batch() -> None:
    reader, total = reader_and_sum()
    compiled = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(places=2)
    exe = fluid.Executor()

    for batch in BATCHES[:2]:
        reader.queue.push(pushed(batch))
    (parts,) = exe.run(compiled, fetch_list=[total], return_merged=False)

    assert [part.item() for part in parts] == [batch.sum() for batch in BATCHES[:2]]
    assert reader.queue.size() == 0


def test_a_closed_queue_takes_no_batch_and_does_not_wait_for_room() -> None:
    queue = FeedQueue(1)
    assert queue.push(1)

    queue.close()

    assert (queue.push(2), queue.is_closed(), list(queue)) == (False, True, [1])


def test_a_run_that_nobody_pushes_for_ends_with_an_error() -> None:
    with pytest.raises(DeadlineError, match="nobody pushed"):
        next(iter(FeedQueue(1, wait_timeout_s=0.01)))


def test_a_generator_goes_before_the_queue_and_join_ends_its_iteration() -> None:
    reader, total = reader_and_sum()
    reader.decorate_batch_generator(lambda: ([batch] for batch in BATCHES))
    queue, exe = reader.queue, fluid.Executor()

    reader.start()
    first = exe.run(fetch_list=[total])[0].item()
    queue.close()
    reader.thread.join()
    reader.start()

    assert [first, exe.run(fetch_list=[total])[0].item()] == [0.0, 0.0]
    assert reader.iterable is False
    reader.reset()


def test_a_tensor_has_the_place_that_programs_compare_with_theirs() -> None:
    place = fluid.core.Place()
    place.set_place(fluid.CPUPlace())

    assert _as_lodtensor(BATCHES[0], fluid.CPUPlace())._place()._equals(fluid.cpu_places(1)[0])
    assert place._type() == fluid.CPUPlace()._type()
    assert not isinstance(fluid.CPUPlace(), (fluid.CUDAPlace, fluid.CUDAPinnedPlace))


def test_an_error_of_a_run_is_the_one_that_programs_of_fluid_expect() -> None:
    x = fluid.layers.data("x", [3])
    loss = fluid.layers.reduce_sum(x)

    with pytest.raises(fluid.core.EnforceNotMet):
        fluid.Executor().run(feed={"x": np.ones((2, 4), "float32")}, fetch_list=[loss])
    assert fluid.core.EnforceNotMet is PsrtError


def test_a_program_of_data_alone_returns_what_was_pushed() -> None:
    reader = fluid.layers.py_reader(capacity=2, shapes=[(-1, 3), (-1, 1)], dtypes=["float32"] * 2)
    pair, exe = fluid.layers.read_file(reader), fluid.Executor()
    exe.run(fluid.default_startup_program())

    reader.queue.push([BATCHES[1], BATCHES[2][:, :1]])
    first, second = exe.run(fetch_list=pair)

    assert first.tolist() == BATCHES[1].tolist()
    assert second.tolist() == BATCHES[2][:, :1].tolist()


def test_a_dataset_runs_over_a_program_without_ops_and_loaders() -> None:
    class Batches:
        def batches(self) -> Any:
            return iter([{"other": BATCHES[0]}])

    x = fluid.layers.data("x", [3])
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())

    exe.train_from_dataset(fluid.default_main_program(), Batches())

    assert x.is_data


def test_a_number_is_a_tensor_of_the_dtype_that_it_is_given() -> None:
    place, kinds = fluid.CPUPlace(), fluid.core.VarDesc.VarType

    assert _as_lodtensor(1, place, kinds.FP64)._dtype() == kinds.FP64
    assert _as_lodtensor(1.0, place, kinds.INT32)._dtype() == kinds.INT32
    with pytest.raises(AssertionError, match="without a dtype"):
        _as_lodtensor(1, place)
