"""Steps of a chain that a tape takes are one call; whoever looks at single ops sees single ops."""

from __future__ import annotations

import numpy as np
import pytest

import psrt
from psrt import layers
from psrt.core.errors import PsrtError
from psrt.executor.compute import RecordedStep
from psrt.executor.parallel.pool import UnderWay
from psrt.executor.parallel.schedule import Schedule
from psrt.executor.parallel.ssa import SsaGraph, SsaNode
from psrt.executor.profiling.profile import Profiler
from psrt.kernels.ops.command_list import EagerBackend


class Diary(EagerBackend):
    """A tape that writes down when it is played."""

    def __init__(self, told: list[str]) -> None:
        self.told = told

    def execute(self) -> None:
        self.told.append("played")


def noted(told: list[str], label: str) -> SsaNode:
    return SsaNode(label, RecordedStep(lambda tape: told.append(label), lambda: Diary(told)))


def plain(told: list[str], label: str) -> SsaNode:
    return SsaNode(label, lambda: told.append(label))


def run(parts: list[SsaNode], profiler: Profiler | None = None) -> UnderWay:
    graph = SsaGraph.of([SsaNode("chain", lambda: None, parts=tuple(parts))])
    under_way = UnderWay(Schedule(graph), profiler)
    under_way.execute(0)
    return under_way


def test_steps_in_a_row_are_played_once():
    told: list[str] = []

    run([noted(told, "a"), noted(told, "b"), noted(told, "c")])

    assert told == ["a", "b", "c", "played"]


def test_what_was_noted_is_played_before_a_step_that_computes_at_once():
    told: list[str] = []

    run([noted(told, "a"), plain(told, "b"), noted(told, "c")])

    assert told == ["a", "played", "b", "c", "played"]


def test_a_profiler_gets_each_step_by_itself():
    told: list[str] = []

    run([noted(told, "a"), noted(told, "b")], Profiler())

    assert told == ["a", "played", "b", "played"]


def test_the_step_that_could_not_be_noted_is_the_one_that_failed():
    told: list[str] = []

    def fail(tape: EagerBackend) -> None:
        raise ValueError("no")

    parts = [noted(told, "a"), SsaNode("b", RecordedStep(fail, EagerBackend)), noted(told, "c")]
    graph = SsaGraph.of([SsaNode("chain", lambda: None, parts=tuple(parts))])
    under_way = UnderWay(Schedule(graph), None)

    with pytest.raises(ValueError, match="no"):
        under_way.execute(0)

    assert under_way.node(0).label == "b"


def test_a_parameter_that_does_not_fit_is_named_with_its_op_and_layer():
    with psrt.program(seed=1) as program:
        x = layers.data("x", shape=(3,))
        loss = layers.mean(layers.fc(layers.fc(x, 4, act="relu"), 2))
    scope = psrt.Scope()
    scope.init_parameters(program)
    weights = scope["fc_1.w_0"]

    with psrt.ParallelExecutor(program, scope, 2, keep=[loss]) as executor:
        executor.run({"x": np.ones((8, 3), np.float32)}, [loss], roles=("forward",))
        weights.shape = (2, 4)  # behind the back of the check of new arrays
        with pytest.raises(PsrtError, match="fc of layer fc_1"):
            executor.run({"x": np.ones((6, 3), np.float32)}, [loss], roles=("forward",))
