"""A loss that is minimized again: parameters have the optimizer that they were given last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt.core import specs
from psrt.core.errors import ProgramError
from psrt.fluid.names import Variable
from psrt.graph.program import Program
from psrt.graph.verify import verify

Change = Callable[[Variable], object]
CLIP, DECAY = fluid.clip.GradientClipByGlobalNorm(0.1), fluid.regularizer.L2Decay(0.5)
NAMES = ["b", "v", "w"]


def network() -> Variable:
    x = fluid.data("x", [None, 3])
    hidden = fluid.layers.fc(x, 4, act="tanh", param_attr="w", bias_attr="b")
    return fluid.layers.mean(fluid.layers.fc(hidden, 1, param_attr="v", bias_attr=False))


def program_of(*changes: Change, network: Callable[[], Variable] = network) -> Program:
    program = fluid.Program()
    program.random_seed = 7
    with fluid.program_guard(program), fluid.unique_name.guard():
        loss = network()
        for change in changes:
            change(loss)
    verify(program.graph)
    return program.graph


def sgd(loss: Variable) -> object:
    return fluid.optimizer.SGD(0.5).minimize(loss)


def adam(loss: Variable) -> object:
    return fluid.optimizer.Adam(0.1, regularization=DECAY, grad_clip=CLIP).minimize(loss)


@pytest.mark.parametrize(("first", "last"), [(sgd, adam), (adam, sgd), (adam, adam), (sgd, sgd)])
def test_a_program_is_what_the_last_optimizer_makes_of_it(
    first: Change, last: Change, caplog: pytest.LogCaptureFixture
) -> None:
    assert program_of(first, last) == program_of(last)

    assert "replaces the optimizers of w, b, v" in caplog.text


def test_gradients_that_are_there_are_taken(caplog: pytest.LogCaptureFixture) -> None:
    def differentiated(loss: Variable) -> object:
        return fluid.backward.append_backward(loss)

    assert program_of(differentiated, sgd) == program_of(sgd)

    assert not caplog.records


@pytest.mark.parametrize("is_read_elsewhere", [False, True])
def test_a_loss_of_one_element_is_the_same_loss_again(is_read_elsewhere: bool) -> None:
    def summed() -> Variable:
        loss = fluid.layers.reshape(network(), [1])
        if is_read_elsewhere:
            fluid.layers.reduce_sum(loss, dim=0, keep_dim=True)
        return loss

    made, expected = (program_of(*each, network=summed) for each in ([sgd, adam], [adam]))

    assert made.vars == expected.vars
    assert [op.type for op in made.ops] == [op.type for op in expected.ops]


@pytest.mark.parametrize("rest", [["b", "v"], ["v"], ["w", "v"]])
def test_others_are_trained_beside_those_that_are_replaced(rest: list[str]) -> None:
    def some(loss: Variable) -> object:
        return fluid.optimizer.SGD(0.5).minimize(loss, parameter_list=["w", "b"])

    def more(loss: Variable) -> object:
        return fluid.optimizer.Adam(0.1).minimize(loss, parameter_list=rest)

    made = program_of(some, more)

    kinds = {name: type(made.parameters[name].optimizer) for name in NAMES}
    assert kinds == {name: specs.Adam if name in rest else specs.Sgd for name in NAMES}
    assert sorted(op.inputs["parameter"][0] for op in made.ops if op.type == "update") == NAMES


def test_part_of_what_one_norm_clips_is_not_replaced() -> None:
    loss = network()
    adam(loss)
    graph = fluid.default_main_program().graph
    before = graph.clone()

    with pytest.raises(
        ProgramError, match=r"optimizers of w were not replaced: gradients of b, v "
    ):
        fluid.optimizer.SGD(0.5).minimize(loss, parameter_list=["w"])

    assert graph == before


@pytest.mark.parametrize("replicas", [0, 2])
def test_the_last_one_updates_from_then_on(replicas: int) -> None:
    loss = network()
    exe, scope = fluid.Executor(), fluid.global_scope()
    fluid.optimizer.Momentum(0.0, 0.9).minimize(loss)
    exe.run(fluid.default_startup_program())
    feed = {"x": np.ones((2, 3), "f4")}
    program: Any = fluid.default_main_program()
    if replicas:
        program = fluid.CompiledProgram(program).with_data_parallel(loss.name, places=replicas)
    before = scope["b"].copy()
    exe.run(program, feed=feed)
    np.testing.assert_array_equal(scope["b"], before)

    fluid.optimizer.Momentum(1.0, 0.9).minimize(loss)
    (gradient,) = exe.run(program, feed=feed, fetch_list=["b@GRAD"])

    assert np.abs(gradient).min() > 0
    np.testing.assert_allclose(scope["b"], before - gradient, rtol=1e-6)  # no velocity of before
