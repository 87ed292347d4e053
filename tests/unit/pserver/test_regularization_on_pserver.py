"""Regularisation by the tables of a pserver, as a program declares it; trainers do none.

Oracles are the published optimizers in float64, given gradients with coeff · w or coeff · sign(w).
"""

from __future__ import annotations

import dataclasses
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from psrt import Model, Param, Program, clip, initializer, layers, optimizer, regularizer
from psrt import program as new_program
from psrt.core import specs
from psrt.core.errors import PsrtError
from psrt.graph.clip_and_decay import without_decay
from psrt.graph.verify import verify
from psrt.kernels.tables.initialize import fill_block, fill_rows
from psrt.partition.plan import build_plan
from psrt.partition.transpile import trainer_program
from psrt.pserver.decisions.spec_rules import read_spec
from psrt.pserver.tables.dense_table import DenseTable
from psrt.pserver.tables.sparse_table import SparseTable
from psrt.rpc import pb
from psrt.rpc.methods import Method
from psrt.rpc.wire import PUSH_ROWS
from tests.support.optimizer_formulas import EAGER, OPTIMIZERS, Published
from tests.support.pserver import CALL_TIMEOUT_S, inproc_pserver

RATE, COEFF, SIZE, WIDTH = 0.1, 0.2, 40, 5
START = specs.Uniform(-0.5, 0.5)
RULE: dict[str, Any] = {
    "initializer": START,
    "optimizer": specs.Sgd(),
    "learning_rate": specs.ConstantRate(RATE),
    "seed": 7,
    "regularizer": specs.L2Decay(COEFF),
}

f4 = np.float32

every_optimizer = pytest.mark.parametrize("name", OPTIMIZERS)
every_regularizer = pytest.mark.parametrize(
    "kind", [specs.L1Decay(COEFF), specs.L2Decay(COEFF)], ids=["l1", "l2"]
)


def block(size: int = SIZE, **changes: Any) -> DenseTable:
    return DenseTable(specs.DenseTableSpec("w", "w", (size,), 0, size, **RULE | changes))


def table(stripes: int = 3, **changes: Any) -> SparseTable:
    return SparseTable(specs.SparseTableSpec("t", WIDTH, **RULE | changes), stripes)


def apply(rows: SparseTable, ids: np.ndarray, gradients: np.ndarray) -> None:
    rows.apply(rows.route(ids), gradients, RATE)


def read(rows: SparseTable, ids: np.ndarray) -> np.ndarray:
    out = np.empty((len(ids), WIDTH), np.float32)
    rows.read(rows.route(ids), out)
    return out


def initial_block() -> np.ndarray:
    out = np.empty(SIZE, np.float32)
    fill_block(START, 7, 0, out)
    return out


def initial_rows(ids: np.ndarray) -> np.ndarray:
    out = np.empty((len(ids), WIDTH), np.float32)
    fill_rows(START, 7, ids, out)
    return out


def penalty(kind: specs.Regularizer, w: np.ndarray) -> np.ndarray:
    return f4(COEFF) * (np.sign(w) if isinstance(kind, specs.L1Decay) else w)


def numbers(*shape: int, seed: int = 1) -> np.ndarray:
    values = np.random.default_rng(seed).standard_normal(shape, np.float32)
    values.flags.writeable = False
    return values


# --- dense tables ----------------------------------------------------------------------------


@every_optimizer
def test_a_block_follows_its_optimizer_on_the_regularised_gradient(name: str) -> None:
    decaying = block(optimizer=OPTIMIZERS[name])
    oracle = Published(OPTIMIZERS[name], initial_block())

    for gradient in numbers(9, SIZE):
        decaying.apply(gradient, RATE)
        oracle.apply(gradient + COEFF * oracle.w, RATE)

    np.testing.assert_allclose(decaying.read()[0], oracle.w, atol=3e-5)


@every_regularizer
def test_an_arrived_gradient_decays_to_the_bit(kind: specs.Regularizer) -> None:
    decaying, gradient = block(regularizer=kind), numbers(SIZE)

    decaying.apply(gradient, RATE)

    moved = gradient + penalty(kind, initial_block())
    np.testing.assert_array_equal(decaying.read()[0], initial_block() - f4(RATE) * moved)
    np.testing.assert_array_equal(gradient, numbers(SIZE))


@every_regularizer
def test_a_round_decays_once_after_its_mean(kind: specs.Regularizer) -> None:
    decaying, (one, two, three) = block(regularizer=kind), numbers(3, SIZE)

    decaying.apply_mean([one, two, three], 3, RATE)

    moved = (one + two + three) * f4(1 / 3) + penalty(kind, initial_block())
    np.testing.assert_array_equal(decaying.read()[0], initial_block() - f4(RATE) * moved)


def test_a_steady_update_allocates_nothing() -> None:
    size = 1 << 18
    decaying, gradients = block(size), [numbers(size), numbers(size, seed=2)]
    decaying.apply(gradients[0], RATE)
    decaying.apply_mean(gradients, 2, RATE)
    tracemalloc.start()

    decaying.apply(gradients[0], RATE)
    decaying.apply_mean(gradients, 2, RATE)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < size


# --- sparse tables ---------------------------------------------------------------------------


@every_optimizer
@pytest.mark.parametrize("stripes", [1, 3])
def test_rows_decay_when_they_are_pushed_and_only_then(name: str, stripes: int) -> None:
    decaying, ids = table(stripes, optimizer=OPTIMIZERS[name]), np.arange(30, dtype=np.int64)
    plain = table(stripes, optimizer=OPTIMIZERS[name], regularizer=None)
    rng = np.random.default_rng(3)
    for gradients in numbers(6, 12, WIDTH):
        pushed = rng.choice(ids, 12, replace=False)
        with_decay = gradients + f4(COEFF) * read(plain, pushed)
        apply(decaying, pushed, gradients)
        apply(plain, pushed, with_decay)

    np.testing.assert_array_equal(read(decaying, ids), read(plain, ids))


@pytest.mark.parametrize("name", EAGER)
def test_a_row_that_only_the_optimizer_moves_does_not_decay(name: str) -> None:
    decaying, ids = table(optimizer=EAGER[name]), np.array([4, 5], np.int64)
    gradients = numbers(2, WIDTH)
    oracle = Published(EAGER[name], initial_rows(ids[1:]))
    apply(decaying, ids, gradients)
    oracle.apply(gradients[1:] + COEFF * oracle.w, RATE)

    apply(decaying, ids[:1], gradients[:1])
    oracle.apply(np.zeros((1, WIDTH)), RATE)

    np.testing.assert_allclose(read(decaying, ids[1:]), oracle.w, atol=1e-6)


@every_regularizer
def test_rows_decay_to_the_bit_and_their_gradients_stay_as_they_came(
    kind: specs.Regularizer,
) -> None:
    decaying, ids, gradients = table(regularizer=kind), np.array([8, -3, 2**40]), numbers(3, WIDTH)

    apply(decaying, ids, gradients)

    moved = gradients + penalty(kind, initial_rows(ids))
    np.testing.assert_array_equal(read(decaying, ids), initial_rows(ids) - f4(RATE) * moved)
    np.testing.assert_array_equal(gradients, numbers(3, WIDTH))


def test_the_padding_row_does_not_decay() -> None:
    decaying, ids = table(padding_id=3), np.array([3, 4], np.int64)

    apply(decaying, ids, np.zeros((2, WIDTH), np.float32))

    np.testing.assert_array_equal(read(decaying, ids)[0], 0.0)
    assert decaying.rows == 1


@pytest.mark.parametrize("trainers_with_the_row", [1, 2, 3])
def test_a_row_decays_once_a_round_for_any_pushers(trainers_with_the_row: int) -> None:
    spec = specs.SparseTableSpec("t", WIDTH, **RULE)
    ids, zeros = np.array([5], np.int64), np.zeros((1, WIDTH), np.float32)

    with inproc_pserver(trainers=3) as pserver:
        clients = [pserver.join(trainer, spec) for trainer in range(3)]

        def exchange(trainer: int) -> None:
            pushed = slice(0, 1 if trainer < trainers_with_the_row else 0)
            header = pb.Header(step=1, push_key=clients[trainer].next_push_key())
            header.parts.add(kind=PUSH_ROWS, table="t")
            tensors = [ids[pushed], zeros[pushed]]
            clients[trainer].call(
                Method.EXCHANGE, header=header, tensors=tensors, timeout_s=CALL_TIMEOUT_S
            )

        with ThreadPoolExecutor(3) as side_by_side:
            list(side_by_side.map(exchange, range(3), timeout=60.0))
        rows = read(pserver.service.tables.sparse("t"), ids)

    moved = f4(COEFF) * initial_rows(ids)
    np.testing.assert_array_equal(rows, initial_rows(ids) - f4(RATE) * moved)


# --- from the declaration to the table -------------------------------------------------------


def declared(own: regularizer.Regularizer | None = None, **options: Any) -> Program:
    """A dense `w` (4, 3) that may have a regularizer of its own, and a sparse `t` (7, 3)."""
    with new_program() as p:
        x, ids = layers.data("x", (4,)), layers.data("ids", (1,), "int64")
        w = Param("w", initializer.Uniform(-1.0, 1.0), regularizer=own)
        rows = layers.embedding(ids, (7, 3), is_sparse=True, param="t")
        out = layers.elementwise_add(layers.fc(x, 3, param=w, bias=False), rows)
        Model(layers.reduce_sum(out), optimizer=optimizer.Sgd(0.1, **options))
    return p


def clip_and_decay_ops(p: Program) -> list[str]:
    return [op.type for op in p.ops if op.role == "clip_and_decay"]


def test_the_plan_tells_pservers_how_each_parameter_is_regularised() -> None:
    p = declared(regularizer.L1Decay(0.2), regularization=regularizer.L2Decay(0.3))

    plan = build_plan(p.parameters.values(), ["ps0:1", "ps1:1"], min_block_size=1)

    assert {block.spec.regularizer for block in plan.blocks} == {specs.L1Decay(0.2)}
    assert [spec.regularizer for spec in plan.sparse] == [specs.L2Decay(0.3)]


def test_a_coefficient_of_zero_is_no_regularizer_for_a_pserver() -> None:
    p = declared(regularizer.L2Decay(0.0), regularization=regularizer.L2Decay(0.3))

    assert p.parameters["w"].regularizer is None
    assert p.parameters["t"].regularizer == specs.L2Decay(0.3)


def test_a_trainer_of_a_cluster_clips_and_does_not_regularise() -> None:
    p = declared(grad_clip=clip.ByGlobalNorm(0.5), regularization=regularizer.L2Decay(0.3))
    before = p.to_text()

    mine = trainer_program(p)

    verify(mine)
    assert clip_and_decay_ops(mine) == [
        "global_norm",
        "scale_by_global_norm",
        "scale_by_global_norm",
    ]
    assert mine.gradients() == {"w": "w@GRAD@CLIP", "t": "t@GRAD@CLIP"}
    assert p.to_text() == before


def test_without_clipping_a_trainer_pushes_raw_gradients() -> None:
    mine = trainer_program(declared(regularization=regularizer.L1Decay(0.3)))

    assert clip_and_decay_ops(mine) == []
    assert mine.gradients() == {"w": "w@GRAD", "t": "t@GRAD"}


def test_updates_that_stay_read_the_gradient_before_its_decay() -> None:
    p = declared(grad_clip=clip.ByValue(1.0), regularization=regularizer.L2Decay(0.3))

    bare = without_decay(p)

    verify(bare)
    read_by_updates = {op.inputs["gradient"][0] for op in bare.ops if op.type == "update"}
    assert read_by_updates == {"w@GRAD@CLIP", "t@GRAD@CLIP"}


def test_a_decay_that_no_pserver_is_told_of_stays_with_the_trainer() -> None:
    p = declared(regularization=regularizer.L2Decay(0.3))
    p.parameters["t"] = dataclasses.replace(p.parameters["t"], regularizer=None)

    mine = trainer_program(p)

    assert mine.gradients() == {"w": "w@GRAD", "t": "t@GRAD@DECAY"}


def test_a_regularizer_survives_the_text_of_a_program() -> None:
    p = declared(regularization=regularizer.L1Decay(0.3))

    again = Program.from_text(p.to_text())

    assert again.parameters["w"].regularizer == regularizer.L1Decay(0.3)
    assert again.clone(for_test=True).parameters["w"].regularizer is None


def test_a_program_without_regularizers_does_not_mention_them() -> None:
    assert "regularizer" not in declared().to_text()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (specs.L2Decay(float("nan")), "coeff of its regularizer is nan, not a finite number"),
        (specs.L1Decay("much"), "coeff of its regularizer is 'much'"),  # type: ignore[arg-type]
        (specs.Sgd(), "is no regularizer"),
    ],
)
def test_a_table_with_a_regularizer_that_makes_no_sense_is_refused(
    wrong: Any, message: str
) -> None:
    spec = dataclasses.replace(block().spec, regularizer=wrong)

    with pytest.raises(PsrtError, match=message):
        read_spec(specs.to_json(spec))
