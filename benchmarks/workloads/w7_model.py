"""The W7 network: 26 slots of one table of rows of 16, 13 floats, 400-400-400-1, SGD.

A slot has one id, like Criteo's; a ragged slot has one to three.
"""

from __future__ import annotations

import numpy as np

import psrt
from benchmarks.workloads.ctr_data import DENSE, HIDDEN, ROWS, SLOTS, WIDTH, w1_batches, zipf_ids
from psrt import layers

TRAIN = ("forward", "backward", "optimize")


def build(ragged: bool) -> tuple[psrt.Program, str]:
    """The program and the name of its loss."""
    with psrt.program(seed=1) as program:
        slots = [
            layers.data(f"C{i}", shape=() if ragged else (1,), dtype="int64", ragged=ragged)
            for i in range(SLOTS)
        ]
        dense = layers.data("dense", shape=(DENSE,))
        click = layers.data("click", shape=(1,))
        pooled = layers.slot_embeddings(slots, (ROWS, WIDTH), is_distributed=False)
        layer = layers.concat([pooled, dense])
        for width in HIDDEN:
            layer = layers.fc(layer, width, act="relu")
        logit = layers.fc(layer, 1)
        loss = layers.mean(layers.sigmoid_cross_entropy_with_logits(logit, click))
        psrt.optimizer.Sgd(0.01).minimize(loss)
    return program, loss.name


def feeds(count: int, joined: int, ragged: bool) -> list[dict[str, object]]:
    """`count` batches of `joined` × 512 examples."""
    made = []
    batches = w1_batches(0, count * joined)
    draw, rng = zipf_ids(9), np.random.default_rng(9)
    for at in range(0, len(batches), joined):
        parts = zip(*batches[at : at + joined], strict=True)
        ids, dense, click = (np.concatenate(part) for part in parts)
        feed: dict[str, object] = {"dense": dense, "click": click}
        for slot in range(SLOTS):
            if ragged:
                offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 4, len(ids)))])
                feed[f"C{slot}"] = psrt.Ragged(draw(int(offsets[-1])), offsets)
            else:
                feed[f"C{slot}"] = np.ascontiguousarray(ids[:, slot : slot + 1])
        made.append(feed)
    return made
