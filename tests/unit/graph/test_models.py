"""Models of published papers, built from layers: their gradients are right and they learn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from psrt import Executor, Model, Ragged, Scope, layers, optimizer, program
from psrt.core.types import Array
from psrt.graph.program import Var
from tests.support.gradcheck import check_gradients

FIELDS, IDS, WIDTH, EXAMPLES, STEPS = 4, 30, 3, 32, 50
RNG = np.random.default_rng(29)
ALL = ("forward", "backward", "optimize")


def batch(examples: int) -> dict[str, Array | Ragged]:
    """Categories whose pairs decide the label, numbers, and `index:value` pairs."""
    ids = RNG.integers(0, IDS, (examples, FIELDS))
    lengths = RNG.integers(0, 4, examples)
    index = [list(row[:n]) for row, n in zip(ids, lengths, strict=True)]
    values = [[float(v) for v in RNG.normal(size=n)] for n in lengths]
    label = ((ids[:, 0] + ids[:, 1]) % 2).astype(np.float32)[:, None]
    return {
        **{f"field_{i}": ids[:, i : i + 1] for i in range(FIELDS)},
        "numbers": RNG.normal(size=(examples, 2)).astype(np.float32),
        "index": Ragged.of(index),
        "values": Ragged.of(values, "float32"),
        "label": label,
    }


def embedded(width: int) -> Var:
    """The joined rows of all fields, (rows, FIELDS · width); fields are declared once."""
    fields = [layers.data(f"field_{i}", (1,), "int64") for i in range(FIELDS)]
    return layers.slot_embeddings(fields, (IDS, width), is_distributed=False)


def numbers() -> Var:
    return layers.data("numbers", (2,))


def tower(x: Var, *sizes: int) -> Var:
    for size in sizes:
        x = layers.fc(x, size, act="tanh")
    return layers.fc(x, 1)


def added(*logits: Var) -> Var:
    total, *others = logits
    for other in others:
        total = layers.elementwise_add(total, other)
    return total


def logistic_regression() -> Var:
    """Over `index:value` pairs, as libsvm text has them."""
    index = layers.data("index", dtype="int64", ragged=True)
    values = layers.data("values", ragged=True)
    return layers.weighted_embedding(index, values, (IDS, 1), is_sparse=True)


def factorization_machine() -> Var:
    """Rendle 2010: w₀ + Σ wᵢ xᵢ + Σ over pairs ⟨vᵢ, vⱼ⟩ xᵢ xⱼ, for categories x = 1."""
    rows = embedded(WIDTH)
    return added(layers.fc(rows, 1), layers.fm_interaction(rows, WIDTH))


def deep_fm() -> Var:
    """Guo et al. 2017: a factorization machine and a tower over the same rows."""
    rows = embedded(WIDTH)
    return added(layers.fm_interaction(rows, WIDTH), tower(rows, 5))


def wide_and_deep() -> Var:
    """Cheng et al. 2016: a linear model and a tower over rows and numbers."""
    deep = tower(layers.concat([embedded(WIDTH), numbers()]), 6, 4)
    return added(logistic_regression(), deep)


def deep_and_cross() -> Var:
    """Wang et al. 2017: x_{l+1} = x₀ · (x_lᵀ w) + b + x_l, and a tower."""
    x_0 = layers.concat([embedded(WIDTH), numbers()])
    x = x_0
    for _ in range(2):
        crossed = layers.elementwise_mul(x_0, layers.fc(x, 1, bias=False))
        bias = layers.create_parameter((1, x_0.shape[1]))
        x = added(crossed, bias, x)
    return added(layers.fc(x, 1), tower(x_0, 4))


MODELS: list[Callable[[], Var]] = [
    logistic_regression,
    factorization_machine,
    deep_fm,
    wide_and_deep,
    deep_and_cross,
]


def loss_of(logit: Var) -> Var:
    label = layers.data("label")
    return layers.mean(layers.sigmoid_cross_entropy_with_logits(logit, label))


def declared(build: Callable[[], Var], examples: int) -> dict[str, Array | Ragged]:
    """A batch of what a model declares."""
    with program() as p:
        build()
    whole = batch(examples)
    return {var.name: whole[var.name] for var in p.data_vars()}


@pytest.mark.parametrize("model", MODELS)
def test_gradients_of_model(model: Callable[[], Var]) -> None:
    def build() -> Var:
        return loss_of(model())

    check_gradients(build, declared(build, 5), spread=0.5)


@pytest.mark.parametrize("model", MODELS)
def test_model_learns_one_batch(model: Callable[[], Var]) -> None:
    with program() as p:
        loss = loss_of(model())
        Model(loss, optimizer=optimizer.Sgd(0.3))
    whole = batch(EXAMPLES)
    feed = {var.name: whole[var.name] for var in p.data_vars()}
    scope = Scope()
    scope.init_parameters(p)
    executor = Executor(p, scope)

    losses = [float(executor.run(feed, [loss], roles=ALL)[0]) for _ in range(STEPS)]  # type: ignore[arg-type]

    assert losses[-1] < 0.98 * losses[0]
