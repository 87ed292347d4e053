"""Float64 vars in an executor of float32: an op that reads one computes in float64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from psrt import Executor, ParallelExecutor, Ragged, Scope, clip, layers, optimizer, program
from psrt.core.types import Array
from psrt.graph.program import Var

PASSES = ("forward", "backward", "clip_and_decay", "optimize")
RNG = np.random.default_rng(5)
FEED: dict[str, Array | Ragged] = {
    "x": RNG.normal(size=(6, 4)).astype(np.float32),
    "label": np.array([[0], [1], [1], [0], [1], [0]]),
    "ragged": Ragged.of([[1.0, 2.0], [], [3.0], [4.0], [5.0], []], "float32"),
}


def label() -> Var:
    return layers.data("label", dtype="int64")


def squares(z: Var) -> Var:
    return layers.reshape(z, (-1, 1, 2, 2))


def expanded(z: Var) -> Var:
    return layers.sequence_expand(z, layers.data("ragged", ragged=True))


CASES: dict[str, Callable[[Var], Var]] = {
    "activations": lambda z: layers.relu(layers.gelu(layers.softplus(layers.sigmoid(z)))),
    "fc": lambda z: layers.fc(layers.fc(z, 3, act="relu"), 1),
    "fc of several": lambda z: layers.fc([z, z], 2),
    "matmul": lambda z: layers.matmul(z, z, transpose_y=True),
    "softmax with cross-entropy": lambda z: layers.softmax_with_cross_entropy(z, label()),
    "binary cross-entropy": lambda z: layers.sigmoid_cross_entropy_with_logits(z, layers.sign(z)),
    "batch norm": lambda z: layers.batch_norm(squares(z)),
    "layer norm": lambda z: layers.layer_norm(z),
    "dropout": lambda z: layers.dropout(z, 0.5, seed=3),
    "topk": lambda z: layers.topk(z, 2)[0],
    "bpr": lambda z: layers.bpr_loss(z, label()),
    "in-batch softmax": lambda z: layers.in_batch_softmax_loss(z, layers.square(z)),
    "pairs of fields": lambda z: layers.fm_interaction(z, width=2),
    "convolution": lambda z: layers.pool2d(layers.conv2d(squares(z), 2, 2, act="relu"), 1),
    "sequences": lambda z: layers.sequence_pool(expanded(z), "max"),
    "nce": lambda z: layers.nce(z, label(), 4),
    "sampled softmax": lambda z: layers.sampled_softmax_with_cross_entropy(z, label(), 4, 2),
    "tree": lambda z: layers.hsigmoid(z, label(), 4),
}


def trained(build: Callable[[Var], Var], is_wide: bool, replicas: int) -> list[Array]:
    """Loss and parameters behind two steps."""
    with program(seed=1) as p:
        hidden = layers.fc(layers.data("x", (4,)), 4)
        out = build(layers.cast(hidden, "float64") if is_wide else hidden)
        assert out.dtype == ("float64" if is_wide else "float32")
        loss = layers.mean(layers.square(out))
        optimizer.Sgd(0.1, grad_clip=clip.ByGlobalNorm(1.0)).minimize(loss)
    scope = Scope()
    scope.init_parameters(p)
    executor = ParallelExecutor(p, scope, replicas=replicas) if replicas else Executor(p, scope)
    feed = {var.name: FEED[var.name] for var in p.data_vars()}
    executor.run(feed, roles=PASSES)
    found = executor.run(feed, [loss], roles=PASSES)
    return [np.asarray(found[0]), *(scope[name] for name in p.parameters)]


@pytest.mark.parametrize("replicas", [0, 2])
@pytest.mark.parametrize("case", CASES)
def test_training_through_float64_is_training_through_float32(case: str, replicas: int) -> None:
    wide, narrow = (trained(CASES[case], is_wide, replicas) for is_wide in (True, False))

    for one, other in zip(wide, narrow, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_layers_over_metrics() -> None:
    with program() as p:
        scores, labels = layers.data("x", (4,)), label()
        accuracy = layers.accuracy(scores, labels)
        error = layers.mae(scores, layers.scale(scores, 2.0))
        outs = [accuracy, layers.mean(accuracy), error, layers.scale(layers.relu(error), 2.0)]
    scope = Scope()
    scope.init_parameters(p)

    found = Executor(p, scope).run({name: FEED[name] for name in ("x", "label")}, outs)

    assert [each.dtype for each in found] == [np.float64] * 4
    assert found[0] == found[1]
    assert 2 * found[2] == found[3]
