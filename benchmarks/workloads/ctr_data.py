"""Criteo-shaped batches for W1 and id streams for W2, in memory (numpy only).

26 id slots share one table of 1,000,000 rows. Ids follow a bounded Zipf(1.05), and a fixed
permutation scatters the ranks over the id space. Each example has 13 dense normals and a label from
a planted logistic model. Shapes and seeds equal those of the peers' scripts.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

BATCH, SLOTS, DENSE, WIDTH, ROWS, ALPHA = 512, 26, 13, 16, 1_000_000, 1.05
HIDDEN = (400, 400, 400)

Batch = tuple[np.ndarray, np.ndarray, np.ndarray]


def zipf_ids(seed: int) -> Callable[[int], np.ndarray]:
    """A sampler of n ids (int64)."""
    cdf = np.cumsum(np.arange(1, ROWS + 1, dtype=np.float64) ** -ALPHA)
    cdf /= cdf[-1]
    scatter = np.random.default_rng(12345).permutation(ROWS).astype(np.int64)
    rng = np.random.default_rng(seed)
    return lambda n: scatter[np.minimum(np.searchsorted(cdf, rng.random(n)), ROWS - 1)]


def w1_batches(rank: int, count: int) -> list[Batch]:
    """`count` batches of (ids (512, 26) int64, dense (512, 13) float32, click (512, 1) float32)."""
    planted = np.random.default_rng(777)
    id_weight = planted.normal(0, 0.35, ROWS).astype(np.float32)
    dense_weight = planted.normal(0, 0.3, DENSE).astype(np.float32)
    draw, rng = zipf_ids(100 + 10 * rank), np.random.default_rng(101 + 10 * rank)
    batches = []
    for _ in range(count):
        ids = draw(BATCH * SLOTS).reshape(BATCH, SLOTS)
        dense = rng.standard_normal((BATCH, DENSE), dtype=np.float32)
        logit = id_weight[ids].sum(1) + dense @ dense_weight - 0.8
        click = rng.random(BATCH) < 1 / (1 + np.exp(-logit))
        batches.append((ids, dense, click.astype(np.float32)[:, None]))
    return batches


def w2_ids(kind: str, count: int = 64, n: int = BATCH * SLOTS) -> list[np.ndarray]:
    """`count` arrays of n ids: `unique` are distinct and uniform, `zipf` have repeats."""
    if kind == "zipf":
        draw = zipf_ids(5)
        return [draw(n) for _ in range(count)]
    rng = np.random.default_rng(5)
    return [rng.choice(ROWS, n, replace=False).astype(np.int64) for _ in range(count)]
