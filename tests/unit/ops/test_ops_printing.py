"""Values that a step prints, and their gradients."""

from __future__ import annotations

import numpy as np
import pytest

from psrt import Executor, Ragged, Scope, layers, program
from psrt.core.errors import ProgramError
from psrt.graph.backward import append_backward
from psrt.graph.program import Var
from tests.support.gradcheck import check_gradients

LISTS = Ragged(np.array([[1.5, 1], [2, 0], [3, 1]], "f4"), np.array([0, 1, 3]))
FORWARD = """Variable: words
  - message: seen
  - lod: {{0, 1, 3}}
  - shape: [3, 2]
  - dtype: float
  - data: [1.5 1]
"""


def test_a_step_prints_a_value_and_its_gradient(capsys: pytest.CaptureFixture[str]) -> None:
    with program() as built:
        words = layers.data("words", (2,), ragged=True)
        scaled = layers.fc(words, 1, param="w", bias=False)
        printed = layers.print_value(words, "seen", first_n=1, summarize=2)
        both = layers.print_value(scaled, title="scaled", parts=["name", "place", "layout"])
        loss = layers.reduce_sum(layers.sequence_pool(both * printed))
        append_backward(built, loss)
    scope = Scope()
    scope.init_parameters(built)
    scope["w"][:] = 2.0
    executor = Executor(built, scope)

    executor.run({"words": LISTS}, roles=("forward", "backward"))
    first = capsys.readouterr().out
    executor.run({"words": LISTS}, roles=("forward", "backward"))
    second = capsys.readouterr().out

    place = "  - place: CPUPlace\n  - layout: NCHW\n"
    expected = f"Variable: scaled\n{place}  - data: [5 4 8]\n"
    gradient = f"Variable: {both.name}@GRAD\n{place}  - data: [2.5 2 4]\n"
    assert first == FORWARD + expected + gradient
    assert second == expected + gradient


def test_integers_and_bools_are_printed_in_the_phase_that_is_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with program() as built:
        ids = layers.data("ids", (), "int64")
        layers.print_value(ids, title="ids", phase="forward", summarize=-1, parts=["dtype"])
        small = layers.less_than(ids, layers.fill_constant((1,), "int64", 2))
        layers.print_value(small, parts=["dtype"])
        layers.print_value(ids, phase="backward")

    Executor(built, Scope()).run({"ids": np.array([1, 2])}, roles=("forward",))

    expected = "  - dtype: long\n  - data: [1 2]\n  - dtype: bool\n  - data: [1 0]\n"
    assert capsys.readouterr().out == expected


def test_gradients_go_through_what_is_printed() -> None:
    def build() -> Var:
        x = layers.print_value(layers.fc(layers.data("x", (2,)), 2, param="w"), first_n=0)
        return layers.reduce_sum(x * x)

    check_gradients(build, {"x": np.array([[1.0, -2.0]])})


@pytest.mark.parametrize("options", [{"phase": "both ways"}, {"parts": ["color"]}])
def test_what_cannot_be_printed_is_refused(options: dict[str, str]) -> None:
    with program(), pytest.raises(ProgramError, match="argument p"):
        layers.print_value(layers.data("x", ()), **options)  # type: ignore[arg-type]
