"""Word vectors by skip-gram with negative sampling (Mikolov et al. 2013).

Slots, as `make_data.py` writes them: `center` and `target`, one word id each. The vectors are the
rows of the table `centers`; `neighbours.py` looks at them.
"""

from __future__ import annotations

from pathlib import Path

import psrt
from psrt import layers


def build(
    vocabulary: str = "data/vocabulary.tsv",
    width: int = 100,
    negatives: int = 5,
    learning_rate: float = 0.1,
    is_sparse: bool = True,
) -> psrt.Model:
    """`vocabulary` has the count of each word; wrong targets are drawn from counts ** 0.75.

    With `is_sparse` a step updates, and sends to pservers, only the rows of its own words.
    """
    lines = (Path(__file__).parent / vocabulary).read_text().splitlines()
    counts = [int(line.split("\t")[1]) for line in lines]
    center = layers.data("center", shape=(1,), dtype="int64")
    target = layers.data("target", shape=(1,), dtype="int64")

    small = psrt.initializer.Uniform(-0.5 / width, 0.5 / width)
    centers = psrt.Param("centers", initializer=small)
    targets = psrt.Param("targets", initializer=psrt.initializer.Constant(0.0))
    rows = layers.embedding(center, (len(counts), width), is_sparse, param=centers)
    cost = layers.negative_sampling_loss(
        layers.flatten(rows),
        target,
        len(counts),
        param=targets,
        num_neg_samples=negatives,
        sampler="custom_dist",
        custom_dist=[count**0.75 for count in counts],
        is_sparse=is_sparse,
    )
    return psrt.Model(layers.mean(cost), optimizer=psrt.optimizer.Adagrad(learning_rate))
