"""Layer functions, public as `psrt.layers`: each writes into the current program.

Call them inside `with psrt.program():`. Arguments that do not fit raise a `ProgramError` that names
the layer, the argument, both shapes and your line.
"""

from __future__ import annotations

from psrt.graph.layers.dense import fc
from psrt.graph.layers.elementwise import (
    elementwise_add,
    elementwise_div,
    elementwise_mul,
    elementwise_sub,
    relu,
    sigmoid,
    softmax,
    tanh,
)
from psrt.graph.layers.inputs import create_parameter, data
from psrt.graph.layers.lookups import embedding, sequence_pool, slot_embeddings
from psrt.graph.layers.losses import (
    cross_entropy,
    mean,
    reduce_sum,
    sigmoid_cross_entropy_with_logits,
    softmax_with_cross_entropy,
    square_error_cost,
)
from psrt.graph.layers.metrics import auc
from psrt.graph.layers.shapes import concat, flatten, reshape

__all__ = [
    "auc",
    "concat",
    "create_parameter",
    "cross_entropy",
    "data",
    "elementwise_add",
    "elementwise_div",
    "elementwise_mul",
    "elementwise_sub",
    "embedding",
    "fc",
    "flatten",
    "mean",
    "reduce_sum",
    "relu",
    "reshape",
    "sequence_pool",
    "sigmoid",
    "sigmoid_cross_entropy_with_logits",
    "slot_embeddings",
    "softmax",
    "softmax_with_cross_entropy",
    "square_error_cost",
    "tanh",
]
