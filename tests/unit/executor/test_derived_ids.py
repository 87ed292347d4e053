"""Ids of sparse tables that are computed from the batch alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import psrt
from psrt import layers
from psrt.core.errors import ProgramError
from psrt.executor.program import derived
from psrt.executor.program.compiled import Compiled
from psrt.graph.derived import derived_ops, derived_vars, trained_ancestor


def program_of_derived_ids() -> tuple[psrt.Program, psrt.graph.program.Var]:
    with psrt.program() as program:
        ids = layers.data("ids", shape=(4,), dtype="int64")
        pairs = layers.reshape(ids, (-1, 2))
        rows = layers.embedding(pairs, (9, 3), is_sparse=True)
        loss = layers.mean(layers.fc(layers.flatten(rows), 1))
        psrt.optimizer.Sgd(0.1).minimize(loss)
    return program, loss


def test_ops_between_data_and_a_sparse_table_are_found():
    program, _ = program_of_derived_ids()

    assert [op.type for op in derived_ops(program)] == ["reshape"]
    assert derived_vars(program) == ["reshape_0.out"]


def test_ids_of_data_alone_have_no_trained_ancestor():
    program, loss = program_of_derived_ids()

    assert trained_ancestor(program, "reshape_0.out") == ""
    assert trained_ancestor(program, loss.name) == "embedding_0.w_0"


def test_rows_are_bound_for_ids_that_the_program_computes():
    program, loss = program_of_derived_ids()
    scope = psrt.Scope()
    scope.init_parameters(program)
    ids = np.array([[1, 2, 3, 1], [8, 2, 2, 0]], np.int64)

    executor = psrt.Executor(program, scope)
    (value,) = executor.run({"ids": ids}, [loss])

    table, w, b = (scope[name] for name in ("embedding_0.w_0", "fc_0.w_0", "fc_0.b_0"))
    expected = (table[ids.reshape(-1, 2)].reshape(4, 6) @ w + b).mean()
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    gradient = executor.gradients()["embedding_0.w_0"]
    assert sorted(gradient.ids.tolist()) == [0, 1, 2, 3, 8]


# --- compiled once --------------------------------------------------------------------------------


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[psrt.Program]:
    """The parts of programs that were compiled to derive ids."""
    parts: list[psrt.Program] = []

    def counted(part: psrt.Program, dtype: str) -> Compiled:
        parts.append(part)
        return Compiled(part, dtype)

    monkeypatch.setattr(derived, "Compiled", counted)
    return parts


def one_executor(program: psrt.Program, scope: psrt.Scope) -> Any:
    return psrt.Executor(program, scope)


def two_replicas(program: psrt.Program, scope: psrt.Scope) -> Any:
    return psrt.ParallelExecutor(program, scope, 2)


@pytest.mark.parametrize("make", [one_executor, two_replicas])
def test_ids_that_a_trainer_derives_ahead_are_compiled_once(
    compiled: list[psrt.Program], make: Callable[[psrt.Program, psrt.Scope], Any]
) -> None:
    program, loss = program_of_derived_ids()
    scope = psrt.Scope()
    scope.init_parameters(program)
    ahead, executor = derived.DerivedIds(program), make(program, scope)

    for step in range(3):
        executor.run(ahead.extend({"ids": np.full((4, 4), step)}, step), [loss])

    assert len(compiled) == 1


def test_an_executor_that_derives_ids_itself_compiles_them_once(
    compiled: list[psrt.Program],
) -> None:
    program, loss = program_of_derived_ids()
    scope = psrt.Scope()
    scope.init_parameters(program)
    executor = psrt.Executor(program, scope)

    for step in range(3):
        executor.run({"ids": np.full((4, 4), step)}, [loss])

    assert len(compiled) == 1


def test_a_program_without_derived_ids_compiles_none(compiled: list[psrt.Program]) -> None:
    with psrt.program() as program:
        out = layers.fc(layers.data("x", shape=(2,)), 1)
    scope = psrt.Scope()
    scope.init_parameters(program)

    psrt.Executor(program, scope).run({"x": np.ones((3, 2), np.float32)}, [out], roles=("forward",))

    assert compiled == []


def test_derived_ids_that_are_not_legal_are_refused_before_any_batch() -> None:
    program, _ = program_of_derived_ids()
    var = program.vars["reshape_0.out"]
    program.vars["reshape_0.out"] = dataclasses.replace(var, dtype="float32")

    with pytest.raises(ProgramError, match="not legal"):
        derived.DerivedIds(program)
