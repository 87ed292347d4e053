"""DeepFM (Guo et al. 2017): a factorization machine and a deep network over the same embeddings.

    logit = Σ w[id] + w · numbers + Σ over pairs of slots of v[id] · v[id'] + network(v, numbers)

Slots, as `psrt data criteo` and `psrt data synth-ctr` write them: `click` (1 float), `dense_input`
(13 floats), `C1` … `C26` (1 id each).
"""

from __future__ import annotations

from collections.abc import Sequence

import psrt
from psrt import layers

IDS = 1_000_000  # a hint only: tables are distributed, any int64 is an id


def build(
    factors: int = 8,
    hidden: Sequence[int] = (128, 64),
    slots: int = 26,
    learning_rate: float = 0.01,
) -> psrt.Model:
    """`factors` is the width of v, `hidden` are the widths of the deep network."""
    click = layers.data("click", shape=(1,))
    numbers = layers.data("dense_input", shape=(13,))
    ids = [layers.data(f"C{i}", shape=(1,), dtype="int64") for i in range(1, slots + 1)]

    one = layers.slot_embeddings(ids, (IDS, 1), param=psrt.Param("w"))
    first = [layers.reduce_sum(one, dim=1, keep_dim=True), layers.fc(numbers, 1)]
    vectors = layers.slot_embeddings(ids, (IDS, factors), param=psrt.Param("v"))
    layer = layers.concat([vectors, numbers], axis=1)
    for width in hidden:
        layer = layers.fc(layer, width, act="relu")
    second = layers.fm_interaction(vectors, width=factors)
    logit = layers.sums([*first, second, layers.fc(layer, 1)])

    loss = layers.mean(layers.sigmoid_cross_entropy_with_logits(logit, click))
    return psrt.Model(
        loss=loss,
        prediction=logit,
        prediction_is="logit",
        label=click,
        optimizer=psrt.optimizer.Adagrad(learning_rate=learning_rate),
    )
