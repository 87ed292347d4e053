"""Ids of sparse tables that are computed from the batch alone."""

from __future__ import annotations

import numpy as np

import psrt
from psrt import layers
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
