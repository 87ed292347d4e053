"""A small click model, trained in this process: what inference tests save and predict with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import psrt
from psrt import layers
from psrt.graph.program import Program

SLOTS = ["click", "x", "ids"]


@dataclass
class Trained:
    """A program after a few steps over `scope`."""

    program: Program
    model: psrt.Model
    scope: psrt.Scope

    @property
    def prediction(self) -> str:
        assert self.model.prediction is not None
        return self.model.prediction.name

    def predict(self, feed: dict[str, np.ndarray]) -> np.ndarray:
        """Predictions of the executor that trained the model."""
        executor = psrt.Executor(self.program, self.scope)
        labelled = {"click": np.zeros((len(feed["x"]), 1), np.float32), **feed}
        (fetched,) = executor.run(labelled, [self.prediction], roles=("forward",))
        return np.asarray(fetched)


def batch(rows: int, seed: int, labelled: bool = False) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    feed = {
        "x": random.normal(size=(rows, 3)).astype(np.float32),
        "ids": random.integers(0, 50, (rows, 2)),
    }
    if labelled:
        feed["click"] = random.integers(0, 2, (rows, 1)).astype(np.float32)
    return feed


def train(sparse: bool = True, padding_id: int | None = None) -> Trained:
    """Five steps; the table has 50 rows and is dense or sparse, whole in the scope either way."""
    with psrt.program() as program:
        click = layers.data("click", shape=(1,))
        x = layers.data("x", shape=(3,))
        ids = layers.data("ids", shape=(2,), dtype="int64")
        rows = layers.embedding(ids, size=(50, 4), is_sparse=sparse, padding_idx=padding_id)
        hidden = layers.fc(layers.concat([layers.flatten(rows), x]), 8, act="relu")
        logit = layers.fc(hidden, 1)
        loss = layers.mean(layers.sigmoid_cross_entropy_with_logits(logit, click))
        prediction = layers.sigmoid(logit)
        model = psrt.Model(loss, prediction, click, psrt.optimizer.Sgd(0.5))
    scope = psrt.Scope()
    scope.init_parameters(program)
    executor = psrt.Executor(program, scope)
    for step in range(5):
        feed = batch(16, seed=step, labelled=True)
        executor.run(feed, roles=("forward", "backward", "optimize"))
    return Trained(program, model, scope)


def lines_of(feed: dict[str, np.ndarray], slots: list[str]) -> str:
    """MultiSlot lines; a missing click is 0."""
    rows = len(feed["x"])
    columns = {"click": np.zeros((rows, 1), int), **feed}
    return "".join(
        " ".join(f"{columns[s].shape[1]} {' '.join(map(str, columns[s][i]))}" for s in slots) + "\n"
        for i in range(rows)
    )
