"""The product in one file: a two-minute tour, in the order a gradient travels.

Read it first; each test is one stop of the path in docs/ARCHITECTURE.md.
"""

from __future__ import annotations

import numpy as np
import pytest

import psrt
from psrt import layers
from psrt.core.specs import Async, Sync
from psrt.graph.program import Program
from psrt.kernels.optimizers import update_kernels
from psrt.partition.plan import build_plan
from psrt.pserver.tables.dense_table import DenseTable
from psrt.rpc import pb
from psrt.rpc.wire.frames import Message, decode, encode
from tests.support.cluster import Feed, train


def line() -> tuple[Program, str]:
    """A model: one embedding row per id plus a linear layer, squared error."""
    with psrt.program(seed=1) as program:
        ids = layers.data("ids", shape=(2,), dtype="int64")
        x = layers.data("x", shape=(3,), dtype="float32")
        y = layers.data("y", shape=(1,), dtype="float32")
        rows = layers.reshape(layers.embedding(ids, (10, 2), is_distributed=True), (-1, 4))
        score = layers.fc(layers.concat([rows, x], axis=1), 1)
        loss = layers.mean(layers.square_error_cost(score, y))
        psrt.optimizer.Adagrad(learning_rate=0.2).minimize(loss)
    return program, loss.name


def batches(count: int, seed: int = 0) -> list[Feed]:
    """y is linear in x and in two planted weights per id."""
    rng = np.random.default_rng(seed)
    planted = np.linspace(-1, 1, 10, dtype=np.float32)
    made = []
    for _ in range(count):
        ids, x = rng.integers(0, 10, (16, 2)), rng.standard_normal((16, 3), dtype=np.float32)
        y = planted[ids].sum(1, keepdims=True) + x @ np.array([[1.0], [-2.0], [0.5]], np.float32)
        made.append({"ids": ids, "x": x, "y": y.astype(np.float32)})
    return made


def test_a_program_is_plain_data_with_a_text_form() -> None:
    program, _ = line()

    again = Program.from_text(program.to_text())

    assert again.to_text() == program.to_text()
    assert [op.type for op in program.ops if op.role == "optimize"] == ["update"] * 3


def test_an_executor_runs_it_and_gives_gradients() -> None:
    program, loss = line()
    (table,) = (p.name for p in program.parameters.values() if p.distributed)
    scope = psrt.Scope()
    scope.init_parameters(program)

    class Zeros:
        def pull_rows(self, wanted: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
            return {name: np.zeros((len(ids), 2), np.float32) for name, ids in wanted.items()}

    executor = psrt.Executor(program, scope, source=Zeros())
    (value,) = executor.run(batches(1)[0], [loss])
    gradients = executor.gradients()

    assert value.size == 1
    assert isinstance(gradients[table], psrt.SelectedRows)
    assert set(gradients) == set(program.parameters)


def test_a_plan_says_what_lives_where() -> None:
    program, _ = line()

    plan = build_plan(program.parameters.values(), ["a:1", "b:1"], min_block_size=2)

    elements = sum(block.spec.size for block in plan.blocks)
    assert elements == 7 + 1
    assert {block.endpoint for block in plan.blocks} == {"a:1", "b:1"}
    assert plan.shard_bounds == (0, 512, 1024)


def test_a_frame_carries_tensors_without_copying_them() -> None:
    gradient = np.arange(6, dtype=np.float32).reshape(2, 3)

    sent = encode(Message(pb.Header(trainer=3), [gradient]))
    received = decode(np.frombuffer(b"".join(sent), np.uint8))

    assert any(np.shares_memory(gradient, np.frombuffer(piece, np.uint8)) for piece in sent)
    assert received.header.trainer == 3
    np.testing.assert_array_equal(received.tensors[0], gradient)


def test_a_table_applies_the_formula_of_its_optimizer() -> None:
    program, _ = line()
    plan = build_plan(program.parameters.values(), ["a:1"])
    spec = next(s for s in plan.dense_specs("a:1") if s.size == 7)
    table, gradient = DenseTable(spec), np.linspace(-1, 1, 7, dtype=np.float32)
    before, version = table.read()

    table.apply(gradient, 0.2)

    step = 0.2 * gradient / (np.sqrt(gradient**2) + spec.optimizer.epsilon)
    values, next_version = table.read()
    np.testing.assert_allclose(values, before - step, rtol=1e-6)
    assert next_version == version + 1


def test_kernels_take_read_only_arrays_and_python_scalars() -> None:
    w, m, g = np.zeros(3, np.float32), np.zeros(3, np.float32), np.ones(3, np.float32)
    g.flags.writeable = False

    update_kernels.adagrad.block(w, m, g, 0.5, 0.0)

    np.testing.assert_allclose(w, -0.5)


@pytest.mark.parametrize("mode", [Sync(), Async()], ids=["sync", "async"])
def test_two_pservers_and_two_trainers_learn(mode: Sync | Async) -> None:
    program, loss = line()

    outcome = train(program, loss, [batches(120, seed=1), batches(120, seed=2)], 2, mode)

    for losses in outcome.losses:
        assert np.mean(losses[-10:]) < 0.05 * np.mean(losses[:10])


def test_synchronous_training_does_not_depend_on_the_number_of_pservers() -> None:
    program, loss = line()
    feeds = [batches(10, seed=1), batches(10, seed=2)]

    one, three = (train(program, loss, feeds, pservers, Sync(), 1) for pservers in (1, 3))

    for name, values in one.dense.items():
        assert values.tobytes() == three.dense[name].tobytes()
