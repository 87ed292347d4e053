"""Arrays that users put into a scope are looked at before kernels trust their shape and dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import psrt
from psrt import layers
from psrt.core.errors import ErrorCode, ProgramError
from psrt.core.types import Array
from psrt.executor import RowBatch

TRAIN, FORWARD = ("forward", "backward", "optimize"), ("forward",)
FEED = {"ids": np.array([[1], [8]]), "word": np.array([[0], [3]])}
EXECUTORS: dict[str, Any] = {
    "one": lambda program, scope: psrt.Executor(program, scope),
    "replicas": lambda program, scope: psrt.ParallelExecutor(program, scope, 2),
}


def program_of() -> psrt.Program:
    """A sparse table t, a dense table d and a weight w."""
    with psrt.program(seed=1) as program:
        ids, word = layers.data("ids", (1,), "int64"), layers.data("word", (1,), "int64")
        rows = layers.embedding(ids, (9, 2), is_sparse=True, param="t")
        words = layers.embedding(word, (5, 2), param="d")
        both = layers.flatten(layers.concat([rows, words]))
        loss = layers.mean(layers.fc(both, 1, param="w", bias=False))
        psrt.optimizer.Adagrad(0.1).minimize(loss)
    return program


def run(kind: str, name: str, array: Array, roles: Any, program: psrt.Program | None = None) -> Any:
    program = program or program_of()
    scope = psrt.Scope()
    scope.init_parameters(program)
    executor = EXECUTORS[kind](program, scope)
    executor.run(FEED, roles=FORWARD)
    scope[name] = array
    return executor.run(FEED, ["mean_0.out"], roles=roles)


def read_only(shape: tuple[int, ...]) -> Array:
    array = np.ones(shape, np.float32)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("kind", EXECUTORS)
@pytest.mark.parametrize("roles", [TRAIN, FORWARD])
@pytest.mark.parametrize(("name", "shape"), [("t", (3, 2)), ("d", (5, 1)), ("w", (4,))])
def test_an_array_of_another_shape_is_refused_by_name(
    kind: str, roles: Any, name: str, shape: tuple[int, ...]
) -> None:
    with pytest.raises(ProgramError) as refused:
        run(kind, name, np.ones(shape, np.float32), roles)

    assert refused.value.code is ErrorCode.SHAPE_MISMATCH
    declared = program_of().parameters[name].shape
    assert f"{name} is declared with shape {declared}" in refused.value.message
    assert f"has shape {shape}" in refused.value.message


@pytest.mark.parametrize("kind", EXECUTORS)
def test_a_table_that_nobody_updates_is_looked_at_too(kind: str) -> None:
    program = program_of().clone(for_test=True)

    with pytest.raises(ProgramError, match=r"t is declared with shape \(9, 2\)"):
        run(kind, "t", np.ones((3, 2), np.float32), FORWARD, program)


@pytest.mark.parametrize("kind", EXECUTORS)
@pytest.mark.parametrize(("name", "shape"), [("t", (9, 2)), ("d", (5, 2)), ("w", (4, 1))])
def test_an_array_of_another_dtype_cannot_be_trained(
    kind: str, name: str, shape: tuple[int, ...]
) -> None:
    with pytest.raises(ProgramError, match=rf"{name} must be float32 .*is float64.*astype"):
        run(kind, name, np.ones(shape), TRAIN)


@pytest.mark.parametrize("kind", EXECUTORS)
@pytest.mark.parametrize(("name", "shape"), [("t", (9, 2)), ("d", (5, 2)), ("w", (4, 1))])
def test_a_read_only_array_can_be_read_but_not_trained(
    kind: str, name: str, shape: tuple[int, ...]
) -> None:
    run(kind, name, read_only(shape), FORWARD)

    with pytest.raises(ProgramError, match=rf"A run changes {name}.*read-only.*array.copy"):
        run(kind, name, read_only(shape), TRAIN)


def test_an_array_that_was_only_read_is_looked_at_before_it_is_trained() -> None:
    program, scope = program_of(), psrt.Scope()
    scope.init_parameters(program)
    scope["w"] = read_only((4, 1))
    executor = psrt.Executor(program, scope)
    executor.run(FEED, roles=FORWARD)

    for _ in range(2):
        with pytest.raises(ProgramError, match="A run changes w"):
            executor.run(FEED, roles=TRAIN)


def test_counts_of_a_metric_must_fit() -> None:
    with psrt.program() as program:
        score, label = layers.data("x"), layers.data("y")
        layers.auc(score, label, bins=16)
    scope = psrt.Scope()
    scope.reset_state(program)
    (name, _) = scope
    scope[name] = np.zeros(16, np.int32)
    feed = {"x": np.ones((2, 1), np.float32), "y": np.ones((2, 1), np.float32)}

    with pytest.raises(ProgramError, match=f"{name} must be int64"):
        psrt.Executor(program, scope).run(feed, roles=FORWARD)


def test_parameters_shared_with_a_program_of_other_widths_are_refused() -> None:
    def wide(width: int) -> psrt.Program:
        with psrt.program() as program:
            layers.mean(layers.fc(layers.data("x", (width,)), 1, param="w"))
        return program

    scope = psrt.Scope()
    scope.init_parameters(wide(2))

    with (
        psrt.ParallelExecutor(wide(2), scope, 2) as one,
        psrt.ParallelExecutor(wide(5), share_vars_from=one) as other,
        pytest.raises(ProgramError, match=r"w is declared with shape \(5, 1\).*\(2, 1\)"),
    ):
        other.run({"x": np.ones((4, 5), np.float32)}, roles=FORWARD)


def test_bound_rows_of_another_width_are_refused() -> None:
    program, scope = program_of(), psrt.Scope()
    scope.init_parameters(program)
    index = {"ids": np.array([0, 1], np.int32)}
    rows = RowBatch(np.array([1, 8]), np.ones((2, 3), np.float32), index)

    with pytest.raises(ProgramError, match=r"Rows of shape \(2, 3\) are bound for 2 ids"):
        psrt.Executor(program, scope).run(FEED, rows={"t": rows})


def test_only_arrays_stand_in_a_scope() -> None:
    value: Any = [[1.0]]

    with pytest.raises(ProgramError, match="w was given a list"):
        psrt.Scope()["w"] = value
