"""Learning rates that ops of the program compute, here, by replicas and by pservers."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt.core.errors import ProgramError
from tests.support.live_pservers import free_port

layers = fluid.layers
FEED = {"x": np.ones((4, 3), "f4"), "ids": np.array([[0], [1], [2], [1]])}
RATES = [0.5, 0.5, 0.25, 0.0625, 0.0625]
"""Rates of five steps: two of 0.5, one of 0.25, then 0.0625."""


def by_switch() -> Any:
    """A var that keeps its value, and that one of three cases writes."""
    step = layers.autoincreased_step_counter(begin=0)
    rate = layers.create_global_var([1], 9.0, "float32", persistable=True, name="rate")
    with layers.Switch() as switch:
        for bound, value in ((2, 0.5), (3, 0.25)):
            with switch.case(layers.less_than(step, layers.fill_constant([1], "int64", bound))):
                layers.assign(np.array([value], "f4"), rate)
        with switch.default():
            layers.assign(np.array([0.0625], "f4"), rate)
    return rate


def by_formula() -> Any:
    """A var of the step: 2 ** −(1, 1, 2, 4, 4)."""
    step = layers.cast(layers.autoincreased_step_counter(begin=0), "float32")
    late = layers.cast(step > 2.0, "float32")
    return layers.exp((layers.cast(step > 1.0, "float32") + late * 2.0 + 1.0) * float(-np.log(2)))


KINDS = {"switch": by_switch, "formula": by_formula}


def build(kind: str) -> Any:
    """A loss whose gradient is 1 for the dense parameter, and the share of each id in a table."""
    x, ids = layers.data("x", [3]), layers.data("ids", [1], dtype="int64")
    rows = layers.embedding(ids, [3, 2], is_sparse=True, param_attr="table")
    twice = fluid.ParamAttr(name="w", learning_rate=2.0)
    dense = layers.fc(x, 1, param_attr=twice, bias_attr=False)
    loss = layers.mean(dense) + layers.reduce_sum(layers.reduce_mean(rows, dim=0))
    fluid.optimizer.SGD(learning_rate=KINDS[kind]()).minimize(loss)
    return loss


@pytest.mark.parametrize("replicas", [0, 2])
def test_a_rate_is_fed_beside_the_batch(replicas: int) -> None:
    x, rate = fluid.data("x", [None, 3]), fluid.data("rate", [1])
    dense = layers.fc(x, 1, param_attr=fluid.ParamAttr("w"), bias_attr=False)
    loss = layers.mean(dense)
    fluid.optimizer.SGD(rate).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    program: Any = fluid.default_main_program()
    if replicas:
        program = fluid.CompiledProgram(program).with_data_parallel(loss.name, places=replicas)
    before = value("w")

    for given in (0.5, 2, np.array([0.25], "f4")):
        (seen,) = exe.run(program, {"x": FEED["x"], "rate": given}, [rate])
        np.testing.assert_allclose(seen, np.full(max(1, replicas), given), rtol=1e-6)

    np.testing.assert_allclose(before - value("w"), np.full((3, 1), 2.75), rtol=1e-6)


def value(name: str) -> Any:
    return np.array(fluid.global_scope().find_var(name).get_tensor())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("replicas", [0, 2])
def test_a_step_here_has_the_rate_that_it_computes(kind: str, replicas: int) -> None:
    loss = build(kind)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    program: Any = fluid.default_main_program()
    if replicas:
        program = fluid.CompiledProgram(program).with_data_parallel(
            loss.name, places=fluid.cpu_places(replicas)
        )
    for rate in RATES:
        w, table = value("w"), value("table")
        exe.run(program, feed=FEED, fetch_list=[loss])
        np.testing.assert_allclose(w - value("w"), np.full((3, 1), 2 * rate), rtol=1e-5)
        shares = rate * np.array([[0.25], [0.5], [0.25]]) * np.ones((1, 2))
        np.testing.assert_allclose(table - value("table"), shares, rtol=1e-4)


def test_replicas_count_a_step_once() -> None:
    step = layers.autoincreased_step_counter(begin=1)
    x = layers.data("x", [3])
    loss = layers.mean(layers.fc(x, 1)) + layers.cast(step, "float32") * 0.0
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    program = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
        loss.name, places=fluid.cpu_places(3)
    )

    seen = [exe.run(program, feed={"x": FEED["x"]}, fetch_list=[step])[0] for _ in range(3)]

    assert [int(value) for value in seen] == [1, 2, 3]
    assert value("@STEP_COUNTER@").tolist() == [3]


def test_a_rate_that_is_put_into_the_scope_holds_from_then_on() -> None:
    x = layers.data("x", [3])
    rate = layers.create_global_var([1], 0.5, "float32", persistable=True, name="rate")
    loss = layers.mean(layers.fc(x, 1, param_attr="w", bias_attr=False))
    fluid.optimizer.Momentum(rate, 0.0).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())

    for number in (0.5, 0.125):
        fluid.global_scope().find_var("rate").get_tensor().set(np.array([number]), None)
        before = value("w")
        exe.run(feed={"x": FEED["x"]})
        np.testing.assert_allclose(before - value("w"), number, rtol=1e-5)


def config_of(mode: str) -> fluid.DistributeTranspilerConfig:
    config = fluid.DistributeTranspilerConfig()
    config.sync_mode = mode == "sync"
    config.half_async, config.geo_sgd_mode = mode == "half_async", mode == "geo"
    config.geo_sgd_need_push_nums = 2
    return config


@pytest.mark.parametrize("mode", ["sync", "async", "half_async", "geo"])
def test_a_rate_travels_to_pservers(mode: str) -> None:
    build("switch")
    endpoint = f"127.0.0.1:{free_port()}"
    transpiler = fluid.DistributeTranspiler(config_of(mode))
    transpiler.transpile(0, pservers=endpoint, trainers=1, sync_mode=mode == "sync")
    part = transpiler.get_pserver_program(endpoint)
    pserver = threading.Thread(target=fluid.Executor().run, args=(part,))
    pserver.start()
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    program = transpiler.get_trainer_program()
    first = value("w")

    seen = []
    for _ in RATES:
        (rate,) = exe.run(program, feed=FEED, fetch_list=["rate"])
        seen.append(float(rate))
        program.connection.executor.flush()  # gradients that wait leave with the newest rate
    last = value("w")
    exe.close()
    pserver.join(timeout=60)

    assert not pserver.is_alive()
    np.testing.assert_allclose(seen, RATES)
    np.testing.assert_allclose(first - last, 2 * sum(RATES), rtol=1e-5)


def test_a_rate_that_is_not_one_float_is_refused() -> None:
    for var in (layers.fill_constant([1], "int64", 1), layers.data("x", [2])):
        with pytest.raises(ProgramError, match="is not one float"):
            fluid.optimizer.Adam(learning_rate=var)


def test_schedules_are_fetched_as_numbers_of_their_step() -> None:
    x = fluid.layers.data("x", [1])
    rate = fluid.layers.exponential_decay(0.5, 2, 0.1, staircase=True)
    loss = fluid.layers.mean(fluid.layers.fc(x, 1))
    fluid.optimizer.SGD(rate).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    feed = {"x": np.ones((2, 1), "f4")}

    found = [exe.run(feed=feed, fetch_list=[loss, rate, "x"]) for _ in range(4)]

    np.testing.assert_allclose([step[1].item() for step in found], [0.5, 0.5, 0.05, 0.05])
    assert all(len(step) == 3 and step[2].shape == (2, 1) for step in found)
    assert f"{found[0][1]:.2f}" == "0.50"
    exe.run(fluid.default_startup_program())
    assert exe.run(feed=feed, fetch_list=rate)[0].item() == 0.5


def test_schedules_are_fetched_from_a_program_without_ops() -> None:
    rate = fluid.layers.linear_lr_warmup(1, 2, 0, 1)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program(), feed={}, fetch_list=[])

    found = [exe.run(feed={}, fetch_list=[rate])[0][0] for _ in range(4)]

    np.testing.assert_allclose(found, [0.0, 0.5, 1.0, 1.0])
    assert exe.run(feed={}, fetch_list=[]) == []
