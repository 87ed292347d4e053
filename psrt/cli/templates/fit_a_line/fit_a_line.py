"""Linear regression: the smallest job there is. Slots: `x` (13 floats) and `price` (1 float)."""

from __future__ import annotations

import psrt
from psrt import layers


def build(learning_rate: float = 0.05) -> psrt.Model:
    x = layers.data("x", shape=(13,), dtype="float32")
    price = layers.data("price", shape=(1,), dtype="float32")
    predicted = layers.fc(x, 1)
    loss = layers.mean(layers.square_error_cost(predicted, price))
    return psrt.Model(loss=loss, optimizer=psrt.optimizer.Sgd(learning_rate=learning_rate))
