"""Initial values: the layers' choices, and equal starts of trainers and pservers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from psrt import Param, Scope, initializer, layers, program
from psrt.core.errors import ProgramError
from psrt.core.specs import Constant, Normal, Uniform
from psrt.graph.program import seed_of
from psrt.kernels.tables.initialize import fill_block, fill_rows


def test_fc_starts_with_xavier_weights_and_zero_bias() -> None:
    with program() as p:
        layers.fc(layers.data("x", (30,)), 24)

    limit = math.sqrt(6 / 54)
    assert p.parameters["fc_0.w_0"].initializer == Uniform(-limit, limit)
    assert p.parameters["fc_0.b_0"].initializer == Constant(0.0)


def test_xavier_takes_the_fan_it_is_given() -> None:
    chosen = initializer.Xavier(uniform=False, fan_in=10, fan_out=40)

    assert chosen.resolve((3, 3)) == Normal(0.0, math.sqrt(2 / 50))


def test_dense_parameter_starts_as_its_pserver_blocks_do() -> None:
    with program(seed=5) as p:
        layers.fc(layers.data("x", (30,)), 24, param=Param(initializer=Normal(0.0, 0.3)))
    scope = Scope()

    scope.init_parameters(p)

    block = np.empty(700, np.float32)
    fill_block(Normal(0.0, 0.3), seed_of(5, "fc_0.w_0"), 20, block)
    np.testing.assert_array_equal(scope["fc_0.w_0"].reshape(-1)[20:], block)


def test_sparse_table_starts_as_its_pserver_rows_do() -> None:
    with program(seed=5) as p:
        ids = layers.data("ids", (1,), "int64")
        layers.embedding(ids, (50, 8), is_sparse=True, padding_idx=3)
    scope = Scope()

    scope.init_parameters(p)

    rows = np.empty((2, 8), np.float32)
    wanted = np.array([49, 7])
    parameter = p.parameters["embedding_0.w_0"]
    fill_rows(parameter.initializer, parameter.seed, wanted, rows)
    np.testing.assert_array_equal(scope["embedding_0.w_0"][wanted], rows)
    assert not scope["embedding_0.w_0"][3].any()


def test_distributed_table_is_held_by_no_scope() -> None:
    with program() as p:
        layers.slot_embeddings([layers.data("ids", (1,), "int64")], (1 << 62, 8))
    scope = Scope()

    scope.init_parameters(p)

    assert len(scope) == 0
    with pytest.raises(ProgramError, match=r"no array for slot_embeddings_0.w_0"):
        scope["slot_embeddings_0.w_0"]


def test_scope_keeps_the_array_it_is_given_without_a_copy() -> None:
    scope, array = Scope(), np.zeros((3, 2), np.float32)

    scope["w"] = array
    scope["t"] = array.T

    assert scope["w"] is array
    assert scope["t"].flags.c_contiguous
    assert sorted(scope) == ["t", "w"]
