"""The CTR-DNN of PaddlePaddle's model zoo in psrt's words; slots as in ctr_dnn.py.

It differs from ctr_dnn.py in its last layer, a softmax over "no click" and "click", in its first
weights, normal with deviation 1 / √(width below), and in its loss, summed over a batch.
"""

from __future__ import annotations

import math

import psrt
from psrt import layers
from psrt.graph.program import Var

HEIGHT = 1_000_001


def build(
    embedding: int = 10,
    hidden: tuple[int, ...] = (400, 400, 400),
    slots: int = 26,
    learning_rate: float = 0.001,
    first_rows: float = 0.01,
    distributed: bool = True,
) -> psrt.Model:
    """Rows of width `embedding` begin between ±`first_rows`, in the model zoo between ±1.

    Any int64 is an id of a `distributed` table. Otherwise ids are below 1,000,001, as in the model
    zoo, and trainers without pservers hold all rows. Adam moves the dense layers and all rows.
    """
    click = layers.data("click", shape=(1,), dtype="int64")
    dense = layers.data("dense_input", shape=(13,))
    ids = [layers.data(f"C{i}", shape=(1,), dtype="int64") for i in range(1, slots + 1)]

    table = psrt.Param("SparseFeatFactors", psrt.initializer.Uniform(-first_rows, first_rows))
    rows = layers.slot_embeddings(
        ids, (HEIGHT, embedding), pool="sum", is_distributed=distributed, param=table
    )
    layer = layers.concat([rows, dense], axis=1)
    for width in hidden:
        layer = _dense(layer, width, "relu")
    predicted = _dense(layer, 2, "softmax")

    return psrt.Model(
        loss=layers.reduce_sum(layers.cross_entropy(predicted, click)),
        prediction=layers.slice(predicted, [1], [1], [2]),
        label=click,
        optimizer=psrt.optimizer.Adam(learning_rate=learning_rate, lazy_mode=False),
    )


def _dense(layer: Var, width: int, act: str) -> Var:
    first = psrt.initializer.Normal(0.0, 1 / math.sqrt(layer.shape[1]))
    return layers.fc(layer, width, act=act, param=psrt.Param(initializer=first))
