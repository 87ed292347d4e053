"""ops: files in reading order.

pooling       Rows of each example to one vector, slot by slot: sums, averages, maxima, and
              their gradients
sequence      Where the elements of ragged vars go, and the softmax over the elements of each
              example
interactions  Products between the features of one example, in one pass over them
images        Images as matrices for BLAS, and pooling over windows of them; float32
random        Numbers that ops draw: pure functions of (seed, step, row, position), as initial
              values are
nn            Fused element-wise steps of the trainer's forward and backward pass, float32
execute       The kernel that plays a tape: many small computations in one call, see
              `psrt.kernels.ops.command_list`
command_list  Small computations noted down, and done in one call without the interpreter
activations   Activations that numpy would compute in several passes, and their derivatives,
              float32
losses        Loss kernels of the trainer, float32: softmax cross-entropy, logistic losses,
              ranking
sampling      Drawing classes, and products of an example with the rows of its classes
metrics       Counting for metrics
"""

from __future__ import annotations

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
from psrt.kernels.ops.command_list import EagerBackend, Note, backend_for
from psrt.kernels.ops.pooling import POOLS

__all__ = [
    "POOLS",
    "EagerBackend",
    "Note",
    "activations",
    "backend_for",
    "images",
    "interactions",
    "losses",
    "metrics",
    "nn",
    "pooling",
    "random",
    "sampling",
    "sequence",
]
