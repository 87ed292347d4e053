"""Kernels of single ops, and command lists. In reading order:

pooling       rows of each example pooled to one vector, slot by slot
sequence      places of ragged elements, and softmax over them
interactions  pairwise products of features
convolution   images as matrices for BLAS
images        maxima and means of windows of images
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
    convolution,
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

__all__ = ["POOLS", "EagerBackend", "activations", "backend_for", "convolution", "images"]
__all__ += ["interactions", "losses", "metrics", "nn", "pooling", "random", "sampling", "sequence"]
