"""Random numbers of ops: pure functions of seed, step and example."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from psrt import BuildStrategy, Executor, ParallelExecutor, Scope, layers, program
from psrt.core.errors import ProgramError
from psrt.core.specs import Normal, Uniform
from psrt.graph.program import Program, Var
from psrt.kernels.tables import fill_rows

X = np.zeros((6, 1), np.float32)


def drawing(kind: str = "uniform_random", **asked: Any) -> tuple[Program, Var]:
    with program(seed=3) as p:
        out = getattr(layers, kind)((-1, 4), input=layers.data("x", (1,)), **asked)
    return p, out


@pytest.mark.parametrize(
    ("kind", "numbers"),
    [("uniform_random", Uniform(-1.0, 1.0)), ("gaussian_random", Normal(0.0, 1.0))],
)
def test_numbers_of_a_seed_are_those_of_a_parameter_by_row(kind: str, numbers: Any) -> None:
    p, out = drawing(kind, seed=11)
    expected = np.empty((6, 4), np.float32)
    fill_rows(numbers, 11, np.arange(6), expected)

    for _ in range(2):
        np.testing.assert_array_equal(Executor(p, Scope()).run({"x": X}, [out])[0], expected)


def test_replicas_draw_what_one_executor_with_the_whole_batch_draws() -> None:
    p, out = drawing()
    alone, many = Executor(p, Scope()), ParallelExecutor(p, Scope(), 3, BuildStrategy())

    for _ in range(2):
        expected = alone.run({"x": X}, [out])[0]
        np.testing.assert_array_equal(many.run({"x": X}, [out])[0], expected)
    many.close()


def test_equal_runs_draw_equal_numbers_and_steps_other_ones() -> None:
    p, out = drawing()

    first = Executor(p, Scope())
    runs = [first.run({"x": X}, [out])[0] for _ in range(3)]
    again = Executor(p, Scope())
    second = [again.run({"x": X}, [out])[0] for _ in range(3)]

    np.testing.assert_array_equal(runs, second)
    assert len({step.tobytes() for step in second}) == 3


@pytest.mark.parametrize(
    ("shape", "what"),
    [((), "argument shape is"), ((2, -1), "unknown size"), ((-1, 2), "no var has as many")],
)
def test_sizes_that_nothing_has_are_refused(shape: tuple[int, ...], what: str) -> None:
    with program(), pytest.raises(ProgramError, match=what):
        layers.uniform_random(shape)


def test_examples_are_not_those_of_lists() -> None:
    with program(), pytest.raises(ProgramError, match="which only pooling ops reduce"):
        layers.gaussian_random((-1, 2), input=layers.data("x", (), ragged=True))
