"""The network of `network.py` in psrt's words, a job of `psrt launch`."""

from __future__ import annotations

import math

import psrt
from benchmarks.fluid_ctr import cpu_time
from benchmarks.fluid_ctr.settings import DENSE, HEIGHT, HIDDEN, SLOTS, WIDTH
from psrt import layers
from psrt.graph.program import Var

NUMBERS = range(1, SLOTS + 1)


def build(learning_rate: float = 0.001, range: float = 0.01) -> psrt.Model:
    """Rows and weights begin as Fluid's do; Adam trains both."""
    cpu_time.begin()
    click = layers.data("click", shape=(1,), dtype="int64")
    dense = layers.data("dense_input", shape=(DENSE,))
    ids = [layers.data(f"C{i}", shape=(1,), dtype="int64") for i in NUMBERS]
    table = psrt.Param("SparseFeatFactors", psrt.initializer.Uniform(-range, range))
    rows = layers.slot_embeddings(
        ids, (HEIGHT, WIDTH), pool="sum", is_distributed=False, param=table
    )
    layer = layers.concat([rows, dense], axis=1)
    for width in HIDDEN:
        layer = _dense(layer, width, "relu")
    predicted = _dense(layer, 2, "softmax")
    loss = layers.reduce_sum(layers.cross_entropy(predicted, click))
    return psrt.Model(
        loss=loss,
        prediction=layers.slice(predicted, [1], [1], [2]),
        label=click,
        optimizer=psrt.optimizer.Adam(learning_rate=learning_rate, lazy_mode=False),
    )


def _dense(layer: Var, width: int, act: str) -> Var:
    scale = 1 / math.sqrt(layer.shape[1])
    weights = psrt.Param(initializer=psrt.initializer.Normal(0.0, scale))
    return layers.fc(layer, width, act=act, param=weights)
