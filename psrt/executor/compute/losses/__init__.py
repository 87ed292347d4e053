"""losses: files in reading order.

class_losses    cross-entropy over classes; kernels compute arrays of class width in place
losses          losses by element: binary cross-entropy, distances, one score and a label
ranking         ranking losses: class against classes, score against score, pair against batch
sampled_losses  losses over a sample of many classes
sampling        ids of the sampled classes: drawn ones, and paths in a tree
"""

from psrt.executor.compute.losses import class_losses, losses, ranking, sampled_losses, sampling
from psrt.executor.compute.losses.class_losses import class_labels

__all__ = ["class_labels", "class_losses", "losses", "ranking", "sampled_losses", "sampling"]
