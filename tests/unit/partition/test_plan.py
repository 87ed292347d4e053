"""The partition plan: tables of each endpoint, determinism of text and hash, refusals."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pytest

from psrt.core import specs
from psrt.core.errors import ConfigError, ProgramError
from psrt.graph.program import Op, Parameter, Program
from psrt.partition.dispatchers import hash_name, round_robin
from psrt.partition.plan import PartitionPlan, build_plan
from psrt.partition.transpile import trainer_program
from psrt.partition.vshards import shard_bounds

ENDPOINTS = ("ps0:6170", "ps1:6170")
UNIFORM, SGD, RATE = specs.Uniform(-0.1, 0.1), specs.Sgd(), specs.ConstantRate(0.1)


@dataclass(frozen=True)
class Declared:
    """A parameter as a program declares it."""

    name: str
    shape: tuple[int, ...]
    initializer: specs.Initializer = UNIFORM
    sparse: bool = False
    distributed: bool = False
    padding_id: int | None = None
    options: specs.TableOptions = specs.DEFAULT_OPTIONS
    seed: int = 7
    optimizer: specs.Optimizer | None = SGD
    learning_rate: specs.LearningRate | None = RATE
    regularizer: specs.Regularizer | None = None
    trainable: bool = True


CTR = [
    Declared("emb", (1_000_001, 16), distributed=True, padding_id=0, optimizer=specs.Adagrad()),
    Declared("fc_0.w_0", (416, 400), seed=1),
    Declared("fc_0.b_0", (400,), specs.Constant(0.0), seed=2),
    Declared("fc_1.w_0", (400, 1), seed=3),
]


def block_names(plan: PartitionPlan, endpoint: str) -> list[str]:
    return [spec.name for spec in plan.dense_specs(endpoint)]


def test_blocks_are_dealt_in_turn_in_the_order_of_parameter_names() -> None:
    plan = build_plan(CTR, ENDPOINTS, dispatcher=round_robin)

    assert block_names(plan, "ps0:6170") == ["fc_0.b_0", "fc_0.w_0.block1"]
    assert block_names(plan, "ps1:6170") == ["fc_0.w_0.block0", "fc_1.w_0"]


def test_blocks_are_balanced_by_default() -> None:
    plan = build_plan(CTR, ENDPOINTS)

    sizes = [plan.balance_of(endpoint).dense_bytes for endpoint in ENDPOINTS]
    assert max(sizes) - min(sizes) <= 4 * max(block.spec.size for block in plan.blocks[:1])
    assert plan.blocks[1].endpoint != plan.blocks[2].endpoint


def test_a_block_spec_carries_the_whole_shape_its_range_and_the_rule_to_apply() -> None:
    plan = build_plan(CTR, ENDPOINTS)

    spec = next(b.spec for b in plan.blocks if b.spec.name == "fc_0.w_0.block1")

    assert spec == specs.DenseTableSpec(
        name="fc_0.w_0.block1",
        parameter="fc_0.w_0",
        shape=(416, 400),
        offset=83_200,
        size=83_200,
        initializer=UNIFORM,
        optimizer=SGD,
        learning_rate=RATE,
        seed=1,
    )


def test_every_endpoint_registers_its_share_of_every_sparse_table() -> None:
    plan = build_plan(CTR, ENDPOINTS)

    shares = [
        spec
        for endpoint in ENDPOINTS
        for spec in plan.specs_for(endpoint)
        if isinstance(spec, specs.SparseTableSpec)
    ]

    assert [(share.first_shard, share.last_shard) for share in shares] == [(0, 512), (512, 1024)]
    assert {share.name for share in shares} == {"emb"}
    assert {share.padding_id for share in shares} == {0}


def test_a_sparse_parameter_that_is_not_distributed_is_a_table_too() -> None:
    plan = build_plan([Declared("emb", (1000, 8), sparse=True)], ENDPOINTS)

    assert [spec.name for spec in plan.sparse] == ["emb"]
    assert plan.blocks == ()


def test_an_embedding_with_dense_gradients_is_a_dense_parameter() -> None:
    plan = build_plan([Declared("emb", (1000, 8))], ENDPOINTS)

    assert plan.dense_shapes == {"emb": (1000, 8)}
    assert plan.sparse == ()


@pytest.mark.parametrize("optimizer", [specs.LarsMomentum(), specs.Lamb()])
def test_a_parameter_whose_optimizer_takes_its_norm_is_not_cut(optimizer: specs.Optimizer) -> None:
    normed, plain = Declared("a", (400, 400), optimizer=optimizer), Declared("b", (400, 400))

    plan = build_plan([normed, plain], ENDPOINTS)

    sizes = [(block.spec.name, block.spec.size) for block in plan.blocks]
    assert sizes == [("a", 160_000), ("b.block0", 80_000), ("b.block1", 80_000)]


@pytest.mark.parametrize("pservers", [1, 2, 3, 5, 1000, 1024])
def test_virtual_shards_are_shared_out_without_gap_and_evenly(pservers: int) -> None:
    bounds = shard_bounds(pservers)

    shares = [last - first for first, last in pairwise(bounds)]
    assert (bounds[0], bounds[-1], len(shares)) == (0, 1024, pservers)
    assert max(shares) - min(shares) <= 1


def test_more_pservers_than_virtual_shards_are_refused() -> None:
    with pytest.raises(ConfigError, match="1024 virtual shards cannot be shared among 1025"):
        shard_bounds(1025)


def test_the_plan_does_not_depend_on_the_order_of_parameters() -> None:
    shuffled = random.Random(3).sample(CTR, len(CTR))

    assert build_plan(shuffled, ENDPOINTS) == build_plan(CTR, ENDPOINTS)
    assert build_plan(shuffled, ENDPOINTS).hash() == build_plan(CTR, ENDPOINTS).hash()


def test_the_hash_is_sha256_of_the_canonical_text() -> None:
    plan = build_plan(CTR, ENDPOINTS)

    assert plan.hash() == hashlib.sha256(plan.to_json().encode()).hexdigest()


@pytest.mark.parametrize(
    "changed",
    [
        build_plan(CTR, ENDPOINTS[::-1]),
        build_plan(CTR, ENDPOINTS, min_block_size=100_000),
        build_plan(CTR, ENDPOINTS, slice_var_up=False),
        build_plan(CTR, ENDPOINTS, dispatcher=hash_name),
        build_plan([replace(CTR[0], seed=8), *CTR[1:]], ENDPOINTS),
        build_plan([replace(CTR[0], optimizer=specs.Adam()), *CTR[1:]], ENDPOINTS),
    ],
)
def test_the_hash_tells_plans_apart(changed: PartitionPlan) -> None:
    assert changed.hash() != build_plan(CTR, ENDPOINTS).hash()


@pytest.mark.parametrize(
    "changed",
    [
        {"optimizer": specs.Adam()},
        {"learning_rate": specs.ConstantRate(5.0)},
        {"regularizer": specs.L2Decay(0.5)},
    ],
)
@pytest.mark.parametrize("which", range(len(CTR)))
def test_in_geo_too_the_hash_tells_optimizers_apart(which: int, changed: dict[str, Any]) -> None:
    given = [replace(each, **changed) if i == which else each for i, each in enumerate(CTR)]

    own = build_plan(CTR, ENDPOINTS, mode=specs.Geo())
    other = build_plan(given, ENDPOINTS, mode=specs.Geo())

    assert (own.blocks, own.sparse) == (other.blocks, other.sparse)
    assert own.hash() != other.hash()


def test_a_dense_parameter_that_is_not_trained_stays_with_the_trainers() -> None:
    frozen = Declared("frozen", (10,), trainable=False, optimizer=None, learning_rate=None)

    assert build_plan([frozen], ENDPOINTS).dense_shapes == {}


def test_a_table_that_is_not_trained_is_served_with_rate_zero() -> None:
    frozen = Declared("emb", (10, 2), sparse=True, trainable=False, optimizer=None)

    (spec,) = build_plan([frozen], ENDPOINTS).sparse

    assert (spec.optimizer, spec.learning_rate) == (specs.Sgd(), specs.ConstantRate(0.0))


def test_a_trained_parameter_without_optimizer_is_refused_by_name() -> None:
    with pytest.raises(ProgramError, match="parameter w has no optimizer"):
        build_plan([Declared("w", (10,), optimizer=None)], ENDPOINTS)


def test_two_parameters_of_one_name_are_refused() -> None:
    with pytest.raises(ProgramError, match="two parameters are called w"):
        build_plan([Declared("w", (10,)), Declared("w", (20,))], ENDPOINTS)


def test_a_table_that_is_not_a_matrix_is_refused() -> None:
    with pytest.raises(ProgramError, match="sparse parameter emb has shape"):
        build_plan([Declared("emb", (10,), sparse=True)], ENDPOINTS)


def test_an_endpoint_listed_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match="ps0:6170 is listed twice"):
        build_plan(CTR, ["ps0:6170", "ps0:6170"])


def test_no_endpoints_are_refused() -> None:
    with pytest.raises(ConfigError, match="no pserver endpoints"):
        build_plan(CTR, [])


def test_asking_for_an_unknown_endpoint_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="ps9:1 is not in the plan") as raised:
        build_plan(CTR, ENDPOINTS).specs_for("ps9:1")

    assert "ps0:6170, ps1:6170" in raised.value.hint


def test_balance_shows_what_each_endpoint_holds() -> None:
    table = build_plan(CTR, ENDPOINTS).balance()

    assert table.splitlines() == [
        "endpoint  dense bytes  blocks  virtual shards  share",
        "ps0:6170      334,400       2             512  50.0%",
        "ps1:6170      334,400       2             512  50.0%",
    ]


def test_the_trainer_program_computes_gradients_but_updates_nothing() -> None:
    ops = [Op(role, {}, {}, role=role) for role in ("forward", "backward", "optimize")]
    program = Program(seed=3, ops=ops)

    trainer = trainer_program(program)

    assert [op.role for op in trainer.ops] == ["forward", "backward"]
    assert (trainer.seed, program.ops) == (3, ops)


def test_a_parameter_of_a_program_can_be_planned() -> None:
    declared = Parameter("emb", (100, 4), specs.Uniform(), seed=5, sparse=True, distributed=True)
    trained = replace(declared, optimizer=SGD, learning_rate=RATE)

    plan = build_plan([trained], ENDPOINTS)

    assert plan.sparse == (specs.SparseTableSpec("emb", 4, specs.Uniform(), SGD, RATE, seed=5),)
