"""The W1 network as a psrt job: 26 ids of one table and 13 floats, 429-400-400-400-1, ReLU."""

from __future__ import annotations

import psrt
from benchmarks.workloads.ctr_data import DENSE, HIDDEN, ROWS, SLOTS, WIDTH
from psrt import layers

OPTIMIZERS = {
    "sgd": psrt.optimizer.Sgd,
    "adagrad": psrt.optimizer.Adagrad,
    "adam": psrt.optimizer.Adam,
}


def build(
    optimizer: str, learning_rate: float, embedding_rate: float, rows: int = ROWS
) -> psrt.Model:
    ids = layers.data("ids", shape=(SLOTS,), dtype="int64")
    dense = layers.data("dense", shape=(DENSE,), dtype="float32")
    click = layers.data("click", shape=(1,), dtype="float32")
    table = psrt.Param(learning_rate=embedding_rate)
    looked_up = layers.embedding(ids, (rows, WIDTH), is_distributed=True, param=table)
    layer = layers.concat([layers.reshape(looked_up, (-1, SLOTS * WIDTH)), dense], axis=1)
    for width in HIDDEN:
        layer = layers.fc(layer, width, act="relu")
    logit = layers.fc(layer, 1)
    loss = layers.mean(layers.sigmoid_cross_entropy_with_logits(logit, click))
    return psrt.Model(loss, optimizer=OPTIMIZERS[optimizer](learning_rate=learning_rate))
