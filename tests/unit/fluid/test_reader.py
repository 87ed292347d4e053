"""DataLoader and PyReader: a generator's batches as feeds, and runs that take them themselves."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt.core.errors import DataError, ProgramError
from psrt.core.tensors import Ragged
from tests.unit.fluid import models

VALUES = np.arange(12, dtype=np.float32).reshape(6, 2)


def sum_model() -> tuple[fluid.Variable, fluid.Variable, fluid.Variable]:
    x = fluid.layers.data("x", [2])
    words = fluid.layers.data("words", [1], dtype="int64", lod_level=1)
    return x, words, fluid.layers.reduce_sum(x)


def dense_model() -> tuple[fluid.Variable, fluid.Variable]:
    x = fluid.layers.data("x", [2])
    return x, fluid.layers.reduce_sum(x)


def examples() -> Iterator[tuple[Any, list[int]]]:
    for number, row in enumerate(VALUES):
        yield row, list(range(number))


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    assert [t.name for t in threading.enumerate() if t.name.startswith("reader-")] == []


def test_examples_become_batches_in_the_shapes_of_their_vars() -> None:
    x, words, _ = sum_model()
    loader = fluid.io.DataLoader.from_generator(feed_list=[x, words], capacity=4)
    loader.set_sample_generator(examples, batch_size=4, drop_last=False)

    passes = [[feed for (feed,) in loader()] for _ in range(2)]

    for feeds in passes:
        assert np.array_equal(np.concatenate([np.array(feed["x"]) for feed in feeds]), VALUES)
        assert [len(feed["x"]) for feed in feeds] == [4, 2]
        assert feeds[0]["words"].lod() == [[0, 0, 1, 3, 6]]


def test_a_feed_of_a_loader_runs() -> None:
    x, words, total = sum_model()
    reader = fluid.io.PyReader([x, words], capacity=2)
    reader.decorate_sample_list_generator(fluid.io.batch(examples, 3), places=fluid.CPUPlace())
    exe = fluid.Executor()

    totals = [exe.run(feed=feed, fetch_list=[total])[0].item() for feed in reader()]

    assert totals == [15.0, 51.0]


def test_batches_may_be_lists_or_feeds_and_come_as_lists() -> None:
    x, words, _ = sum_model()
    lists = Ragged.of([[1], []])
    loader = fluid.io.DataLoader.from_generator([x, words], 2, return_list=True)
    loader.set_batch_generator(lambda: [(VALUES[:2], lists), {"x": VALUES[2:], "words": lists}])

    found = [(np.array(x).sum(), np.array(ids).tolist()) for ((x, ids),) in loader()]

    assert found == [(6.0, [[1]]), (60.0, [[1]])]


def test_the_rest_of_a_dataset_is_shared_out_over_all_places() -> None:
    class Dataset:
        def batches(self) -> Iterator[Any]:
            for start in range(0, 6, 2):
                lists = [[number] * number for number in range(start, start + 2)]
                yield {"x": VALUES[start : start + 2], "words": Ragged.of(lists)}

    places = fluid.cpu_places(2)
    rounds = list(fluid.io.DataLoader.from_dataset(Dataset(), places, drop_last=False))

    assert [[feed["x"].shape()[0] for feed in feeds] for feeds in rounds] == [[2, 2], [1, 1]]
    found = np.concatenate([np.array(feed["x"]) for feeds in rounds for feed in feeds])
    assert np.array_equal(found, VALUES)
    assert [np.array(feed["words"]).ravel().tolist() for feed in rounds[1]] == [[4] * 4, [5] * 5]
    assert len(list(fluid.io.DataLoader.from_dataset(Dataset(), places))) == 1


def test_lists_of_lists_are_fed_with_both_levels() -> None:
    paragraphs = fluid.layers.data("paragraphs", [1], dtype="int64", lod_level=2)
    label = fluid.layers.data("label", [1], dtype="int64")
    sums = fluid.layers.sequence_pool(fluid.layers.cast(paragraphs, "float32"), "sum")
    feeder = fluid.DataFeeder([paragraphs, label], fluid.CPUPlace())

    fed = feeder.feed([([[1, 2, 3], [4, 5]], [1]), ([[6, 7, 8, 9]], [1])])
    (found,) = fluid.Executor().run(feed={"paragraphs": fed["paragraphs"]}, fetch_list=[sums])

    assert fed["paragraphs"].recursive_sequence_lengths() == [[2, 1], [3, 2, 4]]
    assert fed["paragraphs"].shape() == [9, 1]
    assert (paragraphs.lod_level, fed["label"].shape()) == (2, [2, 1])
    assert (found.values.ravel().tolist(), found.offsets.tolist()) == ([6.0, 9.0, 30.0], [0, 2, 3])
    assert fluid.default_main_program().clone().variable("paragraphs").lod_level == 2


def test_lists_of_different_lengths_make_no_array() -> None:
    check = fluid.reader.GeneratorLoader._check_input_array

    check([np.zeros(2), np.ones(2)])
    with pytest.raises(TypeError, match="lists of different lengths"):
        check([[1, 2], [3]])


def test_each_place_gets_a_batch_and_a_round_that_is_not_whole_is_dropped() -> None:
    x, _ = dense_model()
    places = fluid.cpu_places(2)
    dropping, keeping = (
        fluid.io.DataLoader.from_generator([x], 2, drop_last=drop).set_batch_generator(
            lambda: ([VALUES[i : i + 2]] for i in (0, 2, 4)), places
        )
        for drop in (True, False)
    )

    assert [len(feeds) for feeds in dropping()] == [2]
    assert [len(feeds) for feeds in keeping()] == [2, 1]


def test_runs_without_a_feed_take_the_batches_until_they_end() -> None:
    x, words, total = sum_model()
    reader = fluid.io.PyReader([x, words], capacity=2, iterable=False)
    reader.decorate_sample_list_generator(fluid.io.batch(examples, 3))
    exe = fluid.Executor()

    for _ in range(2):
        reader.start()
        assert exe.run(fetch_list=[total])[0].item() == 15.0
        assert exe.run(fetch_list=[total])[0].item() == 51.0
        for _ in range(2):
            with pytest.raises(fluid.core.EOFException, match="feeds x has ended"):
                exe.run(fetch_list=[total])
        reader.reset()


@pytest.mark.parametrize("is_compiled", [True, False])
def test_each_iteration_of_a_run_takes_a_batch_of_its_own(is_compiled: bool) -> None:
    x = fluid.layers.data("x", [1])
    loader = fluid.io.DataLoader.from_generator([x], iterable=False)
    loader.set_batch_generator(lambda: ({"x": np.full((1, 1), n, "f4")} for n in range(5)))
    seen = fluid.layers.increment(fluid.layers.create_global_var([1], 0, "int64", name="seen"))
    strategy = fluid.ExecutionStrategy()
    strategy.num_iteration_per_run = 2
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    compiled = fluid.CompiledProgram(fluid.default_main_program())
    compiled.with_data_parallel(exec_strategy=strategy, places=1)
    parallel = fluid.ParallelExecutor(exec_strategy=strategy)

    def run() -> list[float]:
        fetch = [x.name, seen.name]
        values = exe.run(compiled, fetch_list=fetch) if is_compiled else parallel.run(fetch)
        return [value.item() for value in values]

    loader.start()
    found = [run(), run()]
    with pytest.raises(fluid.core.EOFException):
        run()

    assert found == [[1, 2], [3, 4]]
    assert fluid.global_scope()["seen"] == 5, "the batch before the end was computed"
    loader.reset()


def test_a_pass_may_be_left_before_its_end() -> None:
    x, total = dense_model()
    loader = fluid.io.DataLoader.from_generator([x], 1, iterable=False)
    loader.set_batch_generator(lambda: ([VALUES[i : i + 1]] for i in range(6)))
    compiled = fluid.CompiledProgram(fluid.default_main_program())

    loader.start()
    first = fluid.Executor().run(compiled, fetch_list=[total])[0].item()
    loader.reset()
    loader.start()
    again = fluid.Executor().run(compiled, fetch_list=[total])[0].item()
    loader.reset()

    assert first == again == 1.0


def test_a_model_trained_through_a_loader_is_that_trained_by_feeds() -> None:
    losses = []
    for through_loader in (False, True):
        with (
            fluid.program_guard(fluid.Program(), fluid.Program()),
            fluid.scope_guard(fluid.Scope()),
            fluid.unique_name.guard(),
        ):
            loss, feeds = models.fluid_line(), models.line_feeds()
            program = fluid.default_main_program()
            exe = fluid.Executor()
            exe.run(fluid.default_startup_program())
            vars = [program.variable(name) for name in feeds[0]]
            loader = fluid.io.DataLoader.from_generator(vars, 2, iterable=not through_loader)
            loader.set_batch_generator(lambda feeds=feeds: feeds)
            if through_loader:
                loader.start()
            given = [None] * len(feeds) if through_loader else feeds
            losses.append([exe.run(feed=feed, fetch_list=[loss])[0].item() for feed in given])
            loader.reset()

    assert losses[0] == losses[1]


def test_an_error_of_the_generator_comes_to_the_run() -> None:
    x, total = dense_model()

    def broken() -> Iterator[Any]:
        yield [VALUES]
        raise OSError("the disk is gone")

    loader = fluid.io.DataLoader.from_generator([x], 4, iterable=False)
    loader.set_batch_generator(broken).start()
    fluid.Executor().run(fetch_list=[total])

    with pytest.raises(OSError, match="disk is gone"):
        fluid.Executor().run(fetch_list=[total])


def test_the_batches_of_a_dataset_come_for_each_place() -> None:
    class Given:
        def batches(self) -> Iterator[dict[str, Any]]:
            yield from ({"x": row} for row in VALUES)

    rounds = fluid.io.DataLoader.from_dataset(Given(), fluid.cpu_places(4))

    assert [len(feeds) for feeds in rounds] == [4]
    assert [len(feeds) for feeds in rounds] == [4]


def test_wrong_use_says_what_to_call() -> None:
    x, words, total = sum_model()
    pulled = fluid.io.PyReader([x, words], iterable=False)
    iterated = fluid.io.PyReader([x, words])

    with pytest.raises(ProgramError, match=r"Call one of its set_…_generator"):
        list(iterated())
    with pytest.raises(ProgramError, match="Iterate over this one"):
        iterated.start()
    with pytest.raises(ProgramError, match="iterable=False is not iterated over"):
        list(pulled())
    with pytest.raises(ProgramError, match="loader of x is not started"):
        fluid.Executor().run(fetch_list=[total])
    pulled.set_batch_generator(lambda: [(VALUES,)]).start()
    with pytest.raises(ProgramError, match="started already"):
        pulled.start()
    with pytest.raises(DataError, match="A batch has 1 arrays, but the loader feeds x, words"):
        fluid.Executor().run(fetch_list=[total])
    with pytest.raises(ProgramError, match="without feed_list"):
        fluid.io.PyReader()


def test_a_feeder_makes_a_reader_of_feeds_for_one_place_or_several() -> None:
    x, _ = dense_model()
    feeder = fluid.DataFeeder([x], fluid.CPUPlace())
    batches = [[(row,)] for row in VALUES[:5]]

    single = list(feeder.decorate_reader(lambda: iter(batches), multi_devices=False)())
    paired = list(feeder.decorate_reader(lambda: iter(batches), True, num_places=2)())

    assert len(single) == 5
    assert [[np.array(feed["x"]).tolist() for feed in feeds] for feeds in paired] == [
        [[VALUES[0].tolist()], [VALUES[1].tolist()]],
        [[VALUES[2].tolist()], [VALUES[3].tolist()]],
    ]
    with pytest.raises(ValueError, match="1 mini-batches for 2 places"):
        list(feeder.decorate_reader(lambda: iter(batches), True, 2, drop_last=False)())


def test_a_loader_of_a_users_own_defines_its_methods() -> None:
    x, _ = dense_model()

    for method in (fluid.reader.DataLoaderBase().__iter__, fluid.reader.DataLoaderBase().__next__):
        with pytest.raises(NotImplementedError):
            method()
    assert isinstance(fluid.io.PyReader([x], capacity=2), fluid.reader.DataLoaderBase)
