"""Every pass preserves results, and makes its change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import psrt
from psrt import BuildStrategy, layers
from psrt.core.errors import ProgramError
from psrt.executor.compute import ALIASING
from psrt.graph import passes
from psrt.graph.verify import verify

ALL = ("forward", "backward", "optimize")
FLAGS = {
    "fuse_elewise_add_act_ops": True,
    "fuse_loss_gradient": True,
    "fuse_embedding_pool_concat": True,
    "fuse_all_optimizer_ops": True,
    "memory_optimize": True,
}
EXACT = [
    "fuse_elewise_add_act_ops",
    "fuse_loss_gradient",
    "fuse_all_optimizer_ops",
    "memory_optimize",
]

Built = tuple[psrt.Program, str]


def slots_and_layers() -> Built:
    """Pooled slots between other features, activations apart, a metric, a prediction."""
    with psrt.program(seed=1) as program:
        x = layers.data("x", shape=(5,))
        slots = [layers.data(f"s{i}", dtype="int64", ragged=True) for i in range(3)]
        label = layers.data("label", shape=(1,))
        table = psrt.Param("table")
        pooled = [
            layers.sequence_pool(layers.embedding(s, (50, 4), is_sparse=True, param=table), "sum")
            for s in slots
        ]
        hidden = layers.relu(layers.fc(layers.concat([x, *pooled]), 8))
        hidden = layers.relu(layers.fc(hidden, 8))
        logit = layers.fc(layers.reshape(hidden, (-1, 8)), 1)
        layers.auc(logit, label, from_logits=True)
        layers.sigmoid(logit)
        loss = layers.mean(layers.sigmoid_cross_entropy_with_logits(logit, label))
        psrt.optimizer.Adagrad(0.1).minimize(loss)
    return program, loss.name


def attention() -> Built:
    """Ragged rows, softmax over a sequence, vars that share memory."""
    with psrt.program(seed=2) as program:
        history = layers.data("s0", dtype="int64", ragged=True)
        layers.data("s1", dtype="int64", ragged=True)
        layers.data("s2", dtype="int64", ragged=True)
        x = layers.data("x", shape=(5,))
        label = layers.data("label", shape=(1,))
        rows = layers.embedding(history, (50, 6))
        query = layers.fc(x, 6, act="tanh")
        pair = layers.elementwise_mul(rows, layers.sequence_expand(query, history))
        weight = layers.sequence_softmax(layers.fc(pair, 1))
        pooled = layers.sequence_pool(layers.elementwise_mul(rows, weight), "sum")
        out = layers.fc(layers.concat([pooled, query, x]), 4, act="sigmoid")
        predicted = layers.fc(layers.elementwise_add(out, out), 1)
        loss = layers.mean(layers.square_error_cost(predicted, label))
        psrt.optimizer.Adam(0.01).minimize(loss)
    return program, loss.name


MODELS: dict[str, Callable[[], Built]] = {"slots": slots_and_layers, "attention": attention}
every_model = pytest.mark.parametrize("model", MODELS)


def batches(count: int = 4) -> list[dict[str, Any]]:
    """Batches of different sizes, so that memory grows and shrinks."""
    rng = np.random.default_rng(0)

    def batch(rows: int) -> dict[str, Any]:
        ragged = {
            f"s{i}": psrt.Ragged.of(
                [list(rng.integers(0, 50, rng.integers(1, 4))) for _ in range(rows)]
            )
            for i in range(3)
        }
        x = rng.standard_normal((rows, 5)).astype(np.float32)
        return {"x": x, "label": rng.integers(0, 2, (rows, 1)).astype(np.float32), **ragged}

    return [batch(rows) for rows in [6, 9, 1, 7][:count]]


def train(
    built: Built, build: BuildStrategy, replicas: int = 0
) -> tuple[dict[str, Any], list[float]]:
    """Parameters after some steps, and the losses on the way."""
    program, loss = built
    scope = psrt.Scope()
    scope.init_parameters(program)
    if replicas:
        executor: Any = psrt.ParallelExecutor(
            program, scope, replicas, build_strategy=build, keep=[loss]
        )
    else:
        executor = psrt.Executor(program, scope, build_strategy=build, keep=[loss])
    losses = [float(executor.run(feed, [loss], roles=ALL)[0]) for feed in batches()]
    if replicas:
        executor.close()
    return {name: scope[name] for name in scope}, losses


@pytest.mark.parametrize("flag", EXACT)
@every_model
def test_pass_changes_no_bit(model, flag):
    got, losses = train(MODELS[model](), BuildStrategy(**{flag: True}))

    expected, expected_losses = train(MODELS[model](), BuildStrategy())
    assert losses == expected_losses
    for name in expected:
        np.testing.assert_array_equal(got[name], expected[name], err_msg=name)


@pytest.mark.parametrize("replicas", [0, 1, 3])
@every_model
def test_all_passes_together_change_nothing_beyond_rounding(model, replicas):
    got, losses = train(MODELS[model](), BuildStrategy(**FLAGS), replicas)

    expected, expected_losses = train(MODELS[model](), BuildStrategy(), replicas)
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-5)
    for name in expected:
        np.testing.assert_allclose(got[name], expected[name], rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("replicas", [1, 3])
def test_parallel_memory_reuse_changes_no_bit(replicas):
    got, losses = train(attention(), BuildStrategy(memory_optimize=True), replicas)

    expected, expected_losses = train(attention(), BuildStrategy(), replicas)
    assert losses == expected_losses
    for name in expected:
        np.testing.assert_array_equal(got[name], expected[name], err_msg=name)


# --- what each pass is for ------------------------------------------------------------------------


def types_of(program: psrt.Program) -> list[str]:
    return [op.type for op in program.ops]


def test_relu_goes_into_the_layer_before_it():
    program, _ = slots_and_layers()

    fused = passes.fuse_activations(program)

    verify(fused)
    assert "relu" not in types_of(fused)
    assert "relu_grad" not in types_of(fused)
    assert [op.attrs["activation"] for op in fused.ops if op.type == "fc"] == ["relu", "relu", ""]


def test_a_var_to_keep_is_not_fused_away():
    program, _ = slots_and_layers()

    fused = passes.fuse_activations(program, ["fc_0.out"])

    assert [op.attrs["activation"] for op in fused.ops if op.type == "fc"] == ["", "relu", ""]


def test_pooled_lookups_of_a_table_become_one_op():
    program, _ = slots_and_layers()

    fused = passes.fuse_embeddings(program)

    verify(fused)
    types = types_of(fused)
    assert types.count("slot_embeddings") == types.count("slot_embeddings_grad") == 1
    assert not {"embedding", "sequence_pool", "embedding_grad", "sequence_pool_grad"} & set(types)


def test_lookups_that_somebody_else_reads_stay_apart():
    program, _ = slots_and_layers()

    fused = passes.fuse_embeddings(program, ["sequence_pool_1.out"])

    assert "slot_embeddings" not in types_of(fused)


def test_updates_of_dense_parameters_become_one_op():
    program, _ = slots_and_layers()

    fused = passes.fuse_updates(program)

    verify(fused)
    assert [op.type for op in fused.ops if op.role == "optimize"] == ["update", "updates"]


def test_the_gradient_of_a_layer_falls_into_products_that_need_not_wait():
    program, _ = slots_and_layers()

    split = passes.split_products(passes.fuse_activations(program))

    verify(split)
    types = types_of(split)
    assert "fc_grad" not in types
    assert types.count("fc_grad_w") == types.count("fc_grad_x") == 3
    weights = [op for op in split.ops if op.type == "fc_grad_w"]
    readers = {name for op in split.ops if op.role == "backward" for name in op.reads()}
    assert readers.isdisjoint(name for op in weights for name in op.writes())


@every_model
def test_gradients_in_parts_change_no_bit(model):
    program, loss = MODELS[model]()

    got, losses = train((passes.split_products(program), loss), BuildStrategy())

    expected, expected_losses = train((program, loss), BuildStrategy())
    assert losses == expected_losses
    for name in expected:
        np.testing.assert_array_equal(got[name], expected[name], err_msg=name)


def test_ops_that_nothing_needs_are_dropped_and_metrics_stay():
    program, loss = slots_and_layers()

    cut = passes.drop_dead_code(program, [loss])

    verify(cut)
    assert "sigmoid" not in types_of(cut)
    assert "auc" in types_of(cut)
    assert cut.data_vars() == program.data_vars()


@every_model
def test_vars_in_one_buffer_never_live_at_the_same_time(model):
    """The oracle walks the ops with what is in each buffer."""
    program, loss = MODELS[model]()

    plan = passes.plan_memory(program, ALIASING, [loss])

    inside: dict[int, set[str]] = {}
    roles = ("forward", "backward", "clip_and_decay", "optimize")
    for op in sorted(program.ops, key=lambda op: roles.index(op.role)):
        for name in op.reads():
            if name in plan.places:
                assert name in inside[plan.places[name]], f"{op} reads {name}, which is overwritten"
        for name in op.writes():
            if name in plan.owners:
                inside[plan.owners[name]] = {name}
            elif name in plan.places:
                inside[plan.places[name]].add(name)
    assert loss not in plan.places
    assert len(set(plan.owners.values())) < len(plan.owners)


def test_gradients_can_be_left_out_of_memory_reuse():
    program, _ = slots_and_layers()

    plan = passes.plan_memory(program, ALIASING, skip_grads=True)

    assert not [name for name in plan.places if program.vars[name].gradient_of]


def test_a_fetch_of_reused_memory_is_refused():
    program, loss = slots_and_layers()
    scope = psrt.Scope()
    scope.init_parameters(program)
    build = BuildStrategy(memory_optimize=True, fuse_elewise_add_act_ops=True)
    executor = psrt.Executor(program, scope, build_strategy=build, keep=[loss])

    for name in ("fc_0.out", "relu_0.out"):
        with pytest.raises(ProgramError, match=f"{name} is fused away.*keep=.'{name}'") as refused:
            executor.run(batches(1)[0], [name])
        assert refused.value.hint
