"""Handwritten digits: a multilayer perceptron, or a small convolutional net (LeCun et al. 1998).

Slots, as `psrt data mnist` writes them: `pixel` (784 floats from 0 to 1), `label` (1 id, 0 … 9).
"""

from __future__ import annotations

from collections.abc import Sequence

import psrt
from psrt import layers
from psrt.graph.program import Var

CLASSES, SIDE = 10, 28


def build(
    net: str = "conv",
    hidden: Sequence[int] = (200, 200),
    filters: Sequence[int] = (20, 50),
    learning_rate: float = 0.001,
) -> psrt.Model:
    """`net` is "mlp", with dense layers of the widths `hidden`, or "conv", with `filters`."""
    pixel = layers.data("pixel", shape=(SIDE * SIDE,))
    label = layers.data("label", shape=(1,), dtype="int64")

    logits = mlp(pixel, hidden) if net == "mlp" else conv(pixel, filters)

    loss = layers.mean(layers.softmax_with_cross_entropy(logits, label))
    return psrt.Model(
        loss=loss,
        metrics={"accuracy": layers.accuracy(logits, label, running=True)},
        optimizer=psrt.optimizer.Adam(learning_rate=learning_rate),
    )


def mlp(pixel: Var, widths: Sequence[int]) -> Var:
    layer = pixel
    for width in widths:
        layer = layers.fc(layer, width, act="relu")
    return layers.fc(layer, CLASSES)


def conv(pixel: Var, filters: Sequence[int]) -> Var:
    """Windows of 5 × 5, each followed by the maximum of 2 × 2: 28 → 12 → 4 pixels a side."""
    layer = layers.reshape(pixel, (-1, 1, SIDE, SIDE))
    for count in filters:
        layer = layers.simple_img_conv_pool(
            layer, num_filters=count, filter_size=5, pool_size=2, pool_stride=2, act="relu"
        )
    return layers.fc(layer, CLASSES)
