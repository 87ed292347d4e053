"""`BuildStrategy.async_mode`: each replica trains on whole batches of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import psrt.fluid as fluid

RATE = 0.5


def strategies(iterations: int = 1) -> tuple[fluid.BuildStrategy, fluid.ExecutionStrategy]:
    """Those of replicas that one thread runs, so that no update is lost."""
    build, how = fluid.BuildStrategy(), fluid.ExecutionStrategy()
    build.async_mode = True
    how.num_threads, how.num_iteration_per_run = 1, iterations
    return build, how


def trained() -> tuple[Any, Any, Any]:
    """A reader of x (rows, 1), the mean of w · x, and w = 0, which SGD lowers."""
    reader = fluid.layers.py_reader(8, [(-1, 1)], ["float32"], name="reader")
    x = fluid.layers.read_file(reader)
    start = fluid.initializer.Constant(0.0)
    out = fluid.layers.fc(x, 1, param_attr=fluid.ParamAttr("w", start), bias_attr=False)
    loss = fluid.layers.mean(out)
    fluid.optimizer.SGD(RATE).minimize(loss)
    fluid.Executor(fluid.CPUPlace()).run(fluid.default_startup_program())
    return reader, x, loss


def ones(count: int) -> Iterator[list[Any]]:
    for _ in range(count):
        yield [np.ones((2, 1), np.float32)]


def weight() -> float:
    return float(np.array(fluid.global_scope().find_var("w").get_tensor())[0, 0])


@pytest.mark.parametrize(("iterations", "updates"), [(1, [2, 4, 6]), (2, [4, 7])])
def test_each_batch_of_a_loader_is_an_update(
    iterations: int, updates: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CPU_NUM", "2")
    reader, _, loss = trained()
    build, how = strategies(iterations)
    executor = fluid.ParallelExecutor(loss_name=loss.name, build_strategy=build, exec_strategy=how)
    reader.decorate_tensor_provider(lambda: ones(updates[-1]))
    reader.start()

    def after_a_run() -> int:
        executor.run([loss.name])
        return round(-weight() / RATE)

    full = [done for done in updates if done % (2 * iterations) == 0]
    assert [after_a_run() for _ in full] == full
    with pytest.raises(fluid.core.EOFException):
        after_a_run()
    assert round(-weight() / RATE) == updates[-1]


def test_each_part_of_a_list_is_an_update_and_one_batch_is_shared_out() -> None:
    _, x, loss = trained()
    build, how = strategies()
    program = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
        loss.name, build, how, places=fluid.cpu_places(2)
    )
    executor = fluid.Executor(fluid.CPUPlace())
    parts = [{x.name: np.full((2, 1), value, np.float32)} for value in (1, 2, 4)]

    (last,) = executor.run(program, parts, [loss.name])
    assert float(last[0]) == pytest.approx(4 * -RATE * 3)  # the third part, after two updates
    assert weight() == pytest.approx(-RATE * 7)

    executor.run(program, {x.name: np.array([[1.0], [2.0]], np.float32)}, [loss.name])
    assert weight() == pytest.approx(-RATE * 8.5)

    values = executor.run(program, parts[:1], [loss.name], return_merged=False)
    assert len(values[0]) == 1
