"""Slots of one id an example, fused into one op: equal bits, and no var is lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import psrt
from psrt import BuildStrategy, layers
from psrt.core.errors import PsrtError
from psrt.graph import passes
from psrt.graph.program import Program
from psrt.graph.verify import verify

ALL = ("forward", "backward", "optimize")
SLOTS = 5


def clicks(
    order: tuple[int, ...] = (0, 1, 2, 3, 4), padding: int | None = None, sparse: bool = True
) -> tuple[Program, str]:
    """Slots of one table, in `order` in the concat, between dense features."""
    with psrt.program(seed=3) as program:
        x = layers.data("x", shape=(3,))
        slots = [layers.data(f"s{i}", dtype="int64", ragged=True) for i in range(SLOTS)]
        label = layers.data("label", shape=(1,))
        table = psrt.Param("table")
        lists = [
            layers.embedding(slot, (9, 4), is_sparse=sparse, padding_idx=padding, param=table)
            for slot in slots
        ]
        rows = [layers.sequence_rows(each) for each in lists]
        joined = layers.concat([x, *(rows[i] for i in order), x], axis=1)
        hidden = layers.fc(joined, 6, act="tanh")
        loss = layers.mean(layers.square_error_cost(layers.fc(hidden, 1), label))
        psrt.optimizer.Adam(0.05).minimize(loss)
    return program, loss.name


def batches() -> list[dict[str, Any]]:
    """Batches of several sizes, in which slots share ids."""
    rng = np.random.default_rng(0)

    def batch(rows: int) -> dict[str, Any]:
        ids = {
            f"s{i}": psrt.Ragged.of(rng.integers(0, 9, (rows, 1)).tolist()) for i in range(SLOTS)
        }
        x = rng.standard_normal((rows, 3)).astype(np.float32)
        return {"x": x, "label": rng.standard_normal((rows, 1)).astype(np.float32), **ids}

    return [batch(rows) for rows in (6, 8, 3, 40)]


def trained(built: tuple[Program, str], build: BuildStrategy, replicas: int = 0) -> list[Any]:
    """Everything that steps compute, and the parameters after them."""
    program, loss = built
    scope = psrt.Scope()
    scope.init_parameters(program)
    names = [loss] if build.memory_optimize or replicas else _computed(program)
    found: list[Any] = []
    if replicas:
        executor: Any = psrt.ParallelExecutor(
            program, scope, replicas, build_strategy=build, keep=names
        )
    else:
        executor = psrt.Executor(program, scope, build_strategy=build)
    for feed in batches():
        for value in executor.run(feed, names, roles=ALL):
            found += [value.values, value.offsets] if isinstance(value, psrt.Ragged) else [value]
    if replicas:
        executor.close()
    return found + [scope[name] for name in scope]


def _computed(program: Program) -> list[str]:
    """Vars that a run may be asked for: all but gradients of tables, and partial sums of those."""
    tables = [op for op in program.ops if op.type == "embedding_grad"]
    partial = {name for op in tables for name in op.outputs["table@GRAD"]}
    return [name for op in program.ops for name in op.writes() if name not in partial]


MODELS = {
    "in order": clicks(),
    "in another order": clicks((3, 0, 4, 1, 2)),
    "with a padding id": clicks(padding=2),
    "with a dense table": clicks(sparse=False),
}


@pytest.mark.parametrize("model", MODELS)
def test_fused_slots_compute_the_bits_of_slots_apart(model: str) -> None:
    fused = trained(MODELS[model], BuildStrategy(fuse_slot_rows=True))

    apart = trained(MODELS[model], BuildStrategy())
    assert len(fused) == len(apart)
    for got, expected in zip(fused, apart, strict=True):
        assert got.tobytes() == expected.tobytes()


@pytest.mark.parametrize("replicas", [0, 1, 3])
@pytest.mark.parametrize("shares", [False, True])
def test_fused_slots_keep_their_bits_in_replicas_and_in_shared_memory(
    replicas: int, shares: bool
) -> None:
    build = BuildStrategy(fuse_slot_rows=True, memory_optimize=shares)

    fused = trained(clicks(), build, replicas)

    apart = trained(clicks(), BuildStrategy(memory_optimize=shares), replicas)
    for got, expected in zip(fused, apart, strict=True):
        np.testing.assert_array_equal(got, expected)


def test_slots_become_one_op() -> None:
    fused = passes.fuse_slot_rows(clicks()[0])

    verify(fused)
    types = [op.type for op in fused.ops]
    assert types.count("slot_rows") == types.count("slot_rows_grad") == 1
    assert not {"embedding", "sequence_rows", "embedding_grad", "sequence_rows_grad"} & {*types}


def test_a_slot_that_is_read_elsewhere_stays_apart() -> None:
    program, _ = clicks()
    with psrt.graph.builder.Builder(program).written_into():
        layers.sequence_pool(program.vars["embedding_2.out"])

    fused = passes.fuse_slot_rows(program)

    verify(fused)
    assert "slot_rows" not in [op.type for op in fused.ops]


def test_a_list_of_two_ids_is_refused_by_the_name_of_its_slot() -> None:
    program, loss = clicks()
    scope = psrt.Scope()
    scope.init_parameters(program)
    executor = psrt.Executor(program, scope, build_strategy=BuildStrategy(fuse_slot_rows=True))
    feed = batches()[2]
    feed["s3"] = psrt.Ragged.of([[1], [2, 3], []])

    with pytest.raises(PsrtError, match=r"Example 1 of embedding_3.out has 2 elements") as refused:
        executor.run(feed, [loss])
    assert refused.value.hint
