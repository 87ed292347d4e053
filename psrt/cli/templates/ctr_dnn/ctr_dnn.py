"""Click-through rate: one embedding table over all categorical slots, then a small dense network.

Data: one MultiSlot line per impression with the slots `click` (1 float), `dense_input` (13 floats)
and `C1` … `C26` (one id each), as `psrt data synth-ctr` and `psrt data criteo` write them.
"""

from __future__ import annotations

import psrt
from psrt import layers

OPTIMIZERS = {
    "sgd": psrt.optimizer.Sgd,
    "adagrad": psrt.optimizer.Adagrad,
    "adam": psrt.optimizer.Adam,
}


def build(
    embedding: int = 16,
    hidden: tuple[int, ...] = (400, 400, 400),
    slots: int = 26,
    optimizer: str = "adagrad",
    learning_rate: float = 0.005,
    embedding_rate: float = 1.0,
) -> psrt.Model:
    """`embedding` is the width of a row; `hidden` are the widths of the dense layers.

    The learning rate of the table is `embedding_rate` times that of the dense layers. The table is
    distributed: any int64 is an id, its height is only a hint.
    """
    click = layers.data("click", shape=(1,), dtype="float32")
    dense = layers.data("dense_input", shape=(13,), dtype="float32")
    ids = [layers.data(f"C{i}", shape=(1,), dtype="int64") for i in range(1, slots + 1)]

    table = psrt.Param(learning_rate=embedding_rate)
    pooled = layers.slot_embeddings(ids, (1_000_000, embedding), pool="sum", param=table)
    layer = layers.concat([pooled, dense], axis=1)
    for width in hidden:
        layer = layers.fc(layer, width, act="relu")
    logit = layers.fc(layer, 1)

    loss = layers.mean(layers.sigmoid_cross_entropy_with_logits(logit, click))
    return psrt.Model(
        loss=loss,
        prediction=layers.sigmoid(logit),
        label=click,
        optimizer=OPTIMIZERS[optimizer](learning_rate=learning_rate),
    )
