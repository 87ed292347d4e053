"""Logistic regression on sparse rows: score = bias + Σ value · w[index].

Slots, as `psrt data libsvm` writes them: `label` (1 float), `ids` and `values` (any number).
"""

from __future__ import annotations

import psrt
from psrt import layers


def build(
    features: int = 128, learning_rate: float = 0.1, is_distributed: bool = False
) -> psrt.Model:
    """`features` is more than the largest index; an `is_distributed` table takes any index."""
    label = layers.data("label", shape=(1,))
    ids = layers.data("ids", shape=(1,), dtype="int64", ragged=True)
    values = layers.data("values", shape=(1,), ragged=True)

    zero = psrt.initializer.Constant(0.0)
    weights, bias = psrt.Param("w", initializer=zero), psrt.Param("bias", initializer=zero)
    where = {"is_sparse": True, "is_distributed": is_distributed}
    linear = layers.weighted_embedding(ids, values, (features, 1), param=weights, **where)
    logit = layers.elementwise_add(linear, layers.create_parameter((1,), bias))

    loss = layers.mean(layers.sigmoid_cross_entropy_with_logits(logit, label))
    scores = layers.concat([layers.zeros_like(logit), logit], axis=1)
    return psrt.Model(
        loss=loss,
        prediction=logit,
        prediction_is="logit",
        label=label,
        optimizer=psrt.optimizer.Adagrad(learning_rate=learning_rate),
        metrics={"accuracy": layers.accuracy(scores, layers.cast(label, "int64"), running=True)},
    )
