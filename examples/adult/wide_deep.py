"""Wide & Deep (Cheng et al. 2016): a linear model over crossed categories beside a small network.

Slots, as `make_data.py` writes them: `income` (1 float), `numbers` (5 floats), `deep` (9 ids),
`wide` (12 ids).
"""

from __future__ import annotations

from collections.abc import Sequence

import psrt
from psrt import layers


def build(
    embedding: int = 8,
    hidden: Sequence[int] = (64, 32),
    ids: int = 20_000,
    learning_rate: float = 0.02,
) -> psrt.Model:
    """`ids` is more than the largest id; `embedding` and `hidden` are widths of the deep part."""
    income = layers.data("income", shape=(1,))
    numbers = layers.data("numbers", shape=(5,))
    deep = layers.data("deep", shape=(9,), dtype="int64")
    wide = layers.data("wide", shape=(12,), dtype="int64")

    rows = layers.embedding(deep, (ids, embedding), is_sparse=True)
    layer = layers.concat([layers.flatten(rows), numbers], axis=1)
    for width in hidden:
        layer = layers.fc(layer, width, act="relu")
    linear = layers.slot_embeddings([wide], (ids, 1), is_distributed=False)
    logit = layers.elementwise_add(layers.fc(layer, 1), linear)

    loss = layers.mean(layers.sigmoid_cross_entropy_with_logits(logit, income))
    return psrt.Model(
        loss=loss,
        prediction=logit,
        prediction_is="logit",
        label=income,
        optimizer=psrt.optimizer.Adagrad(learning_rate=learning_rate),
    )
