"""`While`, `while_loop` and arrays of tensors by Fluid's names."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt.core.errors import ProgramError
from tests.support.live_pservers import free_port

layers = fluid.layers
RNG = np.random.default_rng(5)
X = RNG.normal(size=(3, 4)).astype("f4")


def started() -> fluid.Executor:
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    return exe


def array(name: str) -> Any:
    return np.array(fluid.global_scope().find_var(name).get_tensor())


def counted(value: int) -> Any:
    made = layers.fill_constant([1], "int64", value)
    made.stop_gradient = True
    return made


def test_arrays_are_summed_by_loops_in_loops_and_gradients_follow() -> None:
    """PaddlePaddle's test_while_op, over examples."""
    fed = [layers.data(f"d{k}", [4]) for k in range(3)]
    for var in fed:
        var.stop_gradient = False
    scaled = [layers.fc(var, 4, bias_attr=False, param_attr="w") for var in fed]
    i = layers.zeros(shape=[1], dtype="int64")
    sums = layers.array_write(x=scaled[0] * 0.0, i=i)
    data = layers.array_write(x=scaled[0], i=i)
    for var in scaled[1:]:
        i = layers.increment(i)
        layers.array_write(var, i, array=data)
    i, j = layers.zeros(shape=[1], dtype="int64"), counted(1)
    first, last = counted(1), counted(3)
    more, more_2 = layers.less_than(x=i, y=first), layers.less_than(x=j, y=last)
    loop, loop_2 = layers.While(cond=more), layers.While(cond=more_2)
    with loop.block():
        result = layers.sums([layers.array_read(data, i=i), layers.array_read(sums, i=i)])
        i = layers.increment(x=i, in_place=True)
        layers.array_write(result, i=i, array=sums)
        layers.less_than(x=i, y=first, cond=more)
        with loop_2.block():
            result = layers.sums([layers.array_read(data, i=j), layers.array_read(sums, i=j)])
            j = layers.increment(x=j, in_place=True)
            layers.array_write(result, i=j, array=sums)
            layers.less_than(x=j, y=last, cond=more_2)
    total = layers.array_read(array=sums, i=j)
    loss = layers.mean(total)
    ((_, gradient),) = fluid.backward.append_backward(loss)
    exe = started()

    feed = {f"d{k}": X + k for k in range(3)}
    value, d, length = exe.run(feed=feed, fetch_list=[loss, gradient, layers.array_length(sums)])

    whole = sum(feed.values())
    np.testing.assert_allclose(value, [(whole @ array("w")).mean()], rtol=1e-5)
    np.testing.assert_allclose(d, np.repeat(whole.sum(0)[:, None], 4, 1) / 12, rtol=1e-5)
    assert length.tolist() == [4]


def network() -> Any:
    """A loss behind three turns of one layer, for which an optimizer is to be chosen."""
    x, y = layers.data("x", [4]), layers.data("y", [1])
    i, n = counted(0), counted(3)
    hidden = layers.fc(x, 8, act="tanh")
    going = layers.less_than(i, n)
    with layers.While(going).block():
        layers.assign(hidden + layers.fc(hidden, 8, act="tanh", param_attr="turn"), hidden)
        layers.increment(i)
        layers.less_than(i, n, cond=going)
    return layers.mean(layers.square_error_cost(layers.fc(hidden, 1), y))


FEED = {"x": X, "y": X.sum(1, keepdims=True)}


def test_training_goes_through_the_turns_of_a_loop() -> None:
    loss = network()
    fluid.optimizer.Adam(0.02).minimize(loss)
    exe = started()
    before = array("turn")

    losses = [exe.run(feed=FEED, fetch_list=[loss])[0].item() for _ in range(60)]

    assert losses[-1] < losses[0] / 20
    assert np.abs(array("turn") - before).min() > 0


def losses_of(place: str) -> list[float]:
    with (
        fluid.program_guard(fluid.Program(), fluid.Program()),
        fluid.scope_guard(fluid.Scope()),
        fluid.unique_name.guard(),
    ):
        loss = network()
        fluid.optimizer.SGD(0.02).minimize(loss)
        exe, program, pserver = started(), fluid.default_main_program(), threading.Thread()
        if place == "replicas":
            build = fluid.BuildStrategy()
            build.memory_optimize = build.fuse_all_optimizer_ops = True
            program = fluid.CompiledProgram(program).with_data_parallel(
                loss.name, build_strategy=build, places=fluid.cpu_places(2)
            )
        if place == "pserver":
            endpoint, transpiler = f"127.0.0.1:{free_port()}", fluid.DistributeTranspiler()
            transpiler.transpile(0, pservers=endpoint, trainers=1)
            part = transpiler.get_pserver_program(endpoint)
            pserver = threading.Thread(target=fluid.Executor().run, args=(part,))
            pserver.start()
        found = [exe.run(program, feed=FEED, fetch_list=[loss])[0] for _ in range(4)]
        exe.close()
        if pserver.ident is not None:
            pserver.join(timeout=60)
        assert not pserver.is_alive()
        shares = [2, 1] if place == "replicas" else [3]
        return [np.average(values, weights=shares) for values in found]


@pytest.mark.parametrize("place", ["replicas", "pserver"])
def test_a_loop_is_trained_everywhere_alike(place: str) -> None:
    np.testing.assert_allclose(losses_of(place), losses_of("here"), rtol=1e-5)


def test_an_array_that_begins_in_a_loop_is_there_after_it() -> None:
    x = layers.data("x", [4])
    seen, last = layers.create_array("float32"), layers.create_tensor("float32")
    i, n = counted(0), counted(3)
    going = layers.less_than(i, n)
    with layers.While(cond=going).block():
        inner, k, two = layers.create_array("int64"), counted(0), counted(2)
        more = layers.less_than(k, two)
        with layers.While(more).block():
            layers.array_write(k, k, inner)
            layers.array_write(x * 2.0, i, seen)
            layers.increment(k)
            layers.less_than(k, two, cond=more)
        layers.assign(layers.cast(layers.array_length(inner), "float32"), last)
        layers.increment(i)
        layers.less_than(i, n, cond=going)
    read = layers.array_read(seen, counted(2))

    found, count, at = started().run(feed={"x": X}, fetch_list=[read, last, i])

    np.testing.assert_array_equal(found, X * 2)
    assert (count.tolist(), at.tolist()) == ([2], [3])


def test_a_function_is_repeated() -> None:
    a, b = counted(0), counted(1)
    n = layers.data("n", [1], append_batch_size=False, dtype="int64")
    i = counted(0)
    limit = layers.reshape(layers.reduce_sum(layers.cast(n, "float32")), [1])
    limit = layers.cast(limit, "int64")

    out = layers.while_loop(
        lambda i, a, b: layers.less_than(i, limit), lambda i, a, b: [i + 1, b, a + b], [i, a, b]
    )

    assert out[1] is a
    exe = started()
    for turns, fibonacci in ((0, 0), (1, 1), (10, 55)):
        (found,) = exe.run(feed={"n": np.array([turns])}, fetch_list=[out[1]])
        assert found.tolist() == [fibonacci]


def test_a_loop_in_a_branch_that_is_not_taken_has_no_turn() -> None:
    x = layers.data("x", [1])
    i, n = counted(0), counted(5)
    seen = layers.array_write(i, i)
    with layers.Switch() as switch, switch.case(layers.reduce_sum(x) < 0.0):
        going = layers.less_than(i, n)
        with layers.While(going).block():
            layers.increment(i)
            layers.array_write(i, i, seen)
            layers.less_than(i, n, cond=going)
    length = layers.array_length(seen)
    exe = started()

    found = [
        [int(v) for v in exe.run(feed={"x": np.array([[sign]], "f4")}, fetch_list=[i, length])]
        for sign in (1.0, -1.0)
    ]

    assert found == [[0, 1], [5, 6]]


def test_a_var_that_outlives_steps_is_counted_in_a_loop() -> None:
    total = layers.create_global_var([1], 10, "int64", persistable=True, name="total")
    i, n = counted(0), counted(4)
    going = layers.less_than(i, n)
    with layers.While(going).block():
        layers.increment(total)
        with layers.Switch() as switch, switch.case(layers.equal(i, counted(0))):
            layers.increment(total, 100)
        layers.increment(i)
        layers.less_than(i, n, cond=going)
    exe = started()

    assert [int(exe.run(fetch_list=[total])[0]) for _ in range(2)] == [114, 218]
    assert array("total").tolist() == [218]


def test_what_is_no_loop_is_refused() -> None:
    x, i, n = layers.data("x", [1]), counted(0), counted(1)
    with pytest.raises(TypeError, match="not one bool"):
        layers.While(i)
    going = layers.less_than(i, n)
    with pytest.raises(ProgramError, match="would run for ever"), layers.While(going).block():
        layers.increment(i)
    with layers.While(going).block():
        inside = layers.increment(i, in_place=False)
        layers.less_than(inside, n, cond=going)
    with pytest.raises(ProgramError, match="What a loop is to leave behind exists before it"):
        inside * 2
    with pytest.raises(ValueError, match="should not be empty"):
        layers.while_loop(lambda: going, list, [])
    with pytest.raises(ValueError, match="same arity"):
        layers.while_loop(lambda i: going, lambda i: [i, i], [i])
    with pytest.raises(TypeError, match="callable"):
        layers.while_loop(going, lambda i: i, [i])
    with pytest.raises(TypeError, match="a list or tuple"):
        layers.while_loop(lambda i: going, lambda i: i, i)
    with pytest.raises(ProgramError, match="whose elements have no rows"):
        layers.array_write(layers.data("w", [1], lod_level=1), i, layers.array_write(i, i))
    with pytest.raises(ProgramError, match="No op has written"):
        layers.array_read(layers.create_array("float32"), i)
    assert x.shape == (-1, 1)
