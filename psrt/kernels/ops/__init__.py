"""Kernels of single ops, and command lists. In reading order:

pooling       rows of each example pooled to one vector, slot by slot
sequence      places of ragged elements, and softmax over them
interactions  pairwise products of features
images        images as matrices for BLAS, and window pooling
random        random numbers of ops: pure functions of their place
nn            fused element-wise steps of forward and backward passes
execute       the kernel that executes a command list
command_list  small computations recorded, then executed in one call
activations   activations and their derivatives
losses        losses: softmax cross-entropy, logistic, ranking
sampling      draws of classes, and products with their rows
metrics       counts for metrics
"""

from psrt.kernels.ops import (
    activations,
    images,
    interactions,
    losses,
    metrics,
    nn,
    pooling,
    random,
    sampling,
    sequence,
)
from psrt.kernels.ops.command_list import EagerBackend, backend_for
from psrt.kernels.ops.pooling import POOLS

__all__ = ["POOLS", "EagerBackend", "activations", "backend_for", "images", "interactions"]
__all__ += ["losses", "metrics", "nn", "pooling", "random", "sampling", "sequence"]
