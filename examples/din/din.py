"""Deep Interest Network (Zhou et al. 2018): the history is weighed by what is offered.

A small network looks at each item of the history beside the offered one and says how much it
counts; the weighted sum is the shopper's interest in this offer.

Slots, as `make_data.py` writes them: `click` (1 float), `history` (any number of item ids), `item`.
"""

from __future__ import annotations

import psrt
from psrt import layers
from psrt.graph.program import Var

IDS = 1_000_000  # a hint only: the table is distributed, any int64 is an id


def build(width: int = 16, attention: bool = True, learning_rate: float = 0.005) -> psrt.Model:
    """`width` of an embedding; without `attention` all items of the history count alike."""
    click = layers.data("click", shape=(1,))
    history = layers.data("history", shape=(1,), dtype="int64", ragged=True)
    item = layers.data("item", shape=(1,), dtype="int64")

    table = psrt.Param("items", initializer=psrt.initializer.Normal(0.0, 0.1))
    seen = layers.embedding(history, (IDS, width), is_distributed=True, param=table)
    rows = layers.embedding(item, (IDS, width), is_distributed=True, param=table)
    offered = layers.flatten(rows)
    if attention:
        interest = interest_in(offered, seen, history)
    else:
        interest = layers.sequence_pool(seen, "average")
    met = layers.elementwise_mul(interest, offered)
    layer = layers.fc(layers.concat([interest, offered, met], axis=1), 32, act="relu")
    logit = layers.fc(layer, 1)

    return psrt.Model(
        loss=layers.mean(layers.sigmoid_cross_entropy_with_logits(logit, click)),
        prediction=logit,
        prediction_is="logit",
        label=click,
        optimizer=psrt.optimizer.Adam(learning_rate=learning_rate),
    )


def interest_in(offered: Var, seen: Var, history: Var) -> Var:
    """Σ weight · row over the history: offered (rows, d), seen ragged (n, d) → (rows, d)."""
    beside = layers.sequence_expand(offered, history)
    apart = layers.elementwise_sub(seen, beside)
    alike = layers.elementwise_mul(seen, beside)
    pair = layers.concat([seen, beside, apart, alike], axis=1)
    weight = layers.fc(layers.fc(pair, 32, act="relu"), 1)
    return layers.sequence_pool(layers.elementwise_mul(seen, weight), "sum")
