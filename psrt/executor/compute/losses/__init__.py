"""losses: files in reading order.

class_losses    Cross-entropy over classes: what is as wide as the classes is computed by
                kernels, in place
losses          Losses by element: binary cross-entropy, distances, losses of one score and a
                label
ranking         Losses that compare: a class with the others, one score with another, a pair
                with the batch
sampled_losses  Losses over many classes that look at a few: products of examples with rows,
                and their losses
sampling        Ids of the few classes a loss looks at: drawn ones, and paths in a tree
"""

from __future__ import annotations

from psrt.executor.compute.losses import class_losses, losses, ranking, sampled_losses, sampling
from psrt.executor.compute.losses.class_losses import class_labels

__all__ = ["class_labels", "class_losses", "losses", "ranking", "sampled_losses", "sampling"]
