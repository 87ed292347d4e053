"""Layer functions, public as `psrt.layers`: each appends ops to the current program.

Call them inside `with psrt.program():`. All raise a `ProgramError` for arguments that do not fit;
it names the layer, the argument, both shapes and the caller's line. `rows` is the number of
examples, dimension 0 of a batch; a ragged var has n elements of all examples there. Floats are
float32 (a float64 var gives float64), ids and classes int64. A docstring that names no shapes keeps
shape and dtype of `x`, which may be ragged.

By family: inputs · dense · elementwise · comparisons · lookups · interactions · losses · ranking ·
sampling · metrics · math · norms · reductions · shapes · sequence · repeating · tagging ·
images · random · values · operators (of vars: `a + b`).
"""

from typing import TYPE_CHECKING

from psrt.graph import arithmetic, names
from psrt.graph.layers.comparisons import (
    equal,
    greater_equal,
    greater_than,
    less_equal,
    less_than,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
    where,
)
from psrt.graph.layers.dense import dot, fc, matmul, mul
from psrt.graph.layers.elementwise import (
    elementwise_add,
    elementwise_div,
    elementwise_max,
    elementwise_min,
    elementwise_mod,
    elementwise_mul,
    elementwise_pow,
    elementwise_sub,
    sums,
)
from psrt.graph.layers.images import conv2d, pool2d, simple_img_conv_pool
from psrt.graph.layers.inputs import create_parameter, data
from psrt.graph.layers.interactions import cos_sim, fm_interaction
from psrt.graph.layers.lookups import embedding, slot_embeddings, weighted_embedding
from psrt.graph.layers.losses import (
    cross_entropy,
    hinge_loss,
    huber_loss,
    log_loss,
    sigmoid_cross_entropy_with_logits,
    smooth_l1,
    softmax_with_cross_entropy,
    square_error_cost,
)
from psrt.graph.layers.math import (
    abs,
    ceil,
    clip,
    cos,
    elu,
    exp,
    floor,
    gelu,
    hard_sigmoid,
    leaky_relu,
    log,
    log_softmax,
    logsigmoid,
    pow,
    reciprocal,
    relu,
    relu6,
    round,
    rsqrt,
    scale,
    sigmoid,
    sign,
    sin,
    softmax,
    softplus,
    softsign,
    sqrt,
    square,
    swish,
    tanh,
)
from psrt.graph.layers.metrics import (
    accuracy,
    auc,
    batch_auc,
    mae,
    precision_recall,
    rmse,
    sliding_auc,
)
from psrt.graph.layers.norms import batch_norm, layer_norm
from psrt.graph.layers.operators import OPERATORS
from psrt.graph.layers.random import dropout, gaussian_random, shuffle_rows, uniform_random
from psrt.graph.layers.ranking import bpr_loss, in_batch_softmax_loss, margin_rank_loss, rank_loss
from psrt.graph.layers.reductions import (
    argmax,
    argmin,
    cumsum,
    l2_normalize,
    mean,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
    topk,
)
from psrt.graph.layers.repeating import (
    Branches,
    Loop,
    Recurrence,
    array_length,
    array_read,
    array_write,
    beam_search,
    beam_search_decode,
    cond,
    create_array,
    create_lists,
    dynamic_gru,
    dynamic_lstm,
    list_count,
    list_read,
    list_write,
    undefined,
    while_loop,
)
from psrt.graph.layers.sampling import (
    hsigmoid,
    nce,
    negative_sampling_loss,
    sampled_softmax_with_cross_entropy,
)
from psrt.graph.layers.sequence import (
    sequence_concat,
    sequence_conv,
    sequence_enumerate,
    sequence_expand,
    sequence_expand_as,
    sequence_first_step,
    sequence_last_step,
    sequence_lengths,
    sequence_mask,
    sequence_nest,
    sequence_pad,
    sequence_pool,
    sequence_regroup,
    sequence_repeat,
    sequence_reshape,
    sequence_reverse,
    sequence_rows,
    sequence_slice,
    sequence_softmax,
    sequence_unpad,
)
from psrt.graph.layers.shapes import (
    concat,
    expand,
    flatten,
    group_rows,
    reshape,
    slice,
    split,
    squeeze,
    stack,
    transpose,
    unsqueeze,
    unstack,
)
from psrt.graph.layers.tagging import crf_decoding, linear_chain_crf
from psrt.graph.layers.values import (
    assign,
    cast,
    constant,
    create_state,
    fill_constant,
    fill_constant_batch_size_like,
    gather,
    gather_nd,
    is_empty,
    one_hot,
    ones_like,
    print_value,
    set_state,
    shape,
    zeros_like,
)

__all__ = ["abs", "accuracy", "argmax", "argmin", "assign", "auc", "batch_auc", "batch_norm"]
__all__ += ["bpr_loss", "cast", "ceil", "clip", "concat", "conv2d", "cos", "cos_sim"]
__all__ += ["create_parameter", "cross_entropy", "cumsum", "data", "dot", "dropout"]
__all__ += ["elementwise_add", "elementwise_div", "elementwise_max", "elementwise_min"]
__all__ += [
    "elementwise_mod",
    "elementwise_mul",
    "elementwise_pow",
    "elementwise_sub",
    "elu",
    "embedding",
    "exp",
]
__all__ += ["expand", "fc", "fill_constant", "fill_constant_batch_size_like", "flatten", "floor"]
__all__ += [
    "fm_interaction",
    "gather",
    "gather_nd",
    "gelu",
    "group_rows",
    "hard_sigmoid",
    "hinge_loss",
]
__all__ += ["constant", "group_rows", "hsigmoid"]
__all__ += ["huber_loss", "in_batch_softmax_loss", "l2_normalize", "layer_norm", "leaky_relu"]
__all__ += ["log", "log_loss", "log_softmax", "logsigmoid", "mae", "margin_rank_loss", "matmul"]
__all__ += ["mean", "mul", "nce", "negative_sampling_loss", "one_hot", "ones_like", "pool2d", "pow"]
__all__ += ["precision_recall", "rank_loss", "reciprocal", "reduce_max", "reduce_mean"]
__all__ += ["reduce_min", "reduce_prod", "reduce_sum", "relu", "relu6", "reshape", "rmse", "round"]
__all__ += ["rsqrt", "sampled_softmax_with_cross_entropy", "scale", "sequence_concat"]
__all__ += ["sequence_expand", "sequence_first_step", "sequence_last_step", "sequence_mask"]
__all__ += ["sequence_pad", "sequence_pool", "sequence_reverse", "sequence_slice"]
__all__ += ["sequence_softmax", "sequence_unpad", "sigmoid", "sigmoid_cross_entropy_with_logits"]
__all__ += ["sign", "simple_img_conv_pool", "sin", "slice", "slot_embeddings", "smooth_l1"]
__all__ += ["softmax", "softmax_with_cross_entropy", "softplus", "softsign", "split", "sqrt"]
__all__ += ["square", "square_error_cost", "squeeze", "stack", "sums", "swish", "tanh", "topk"]
__all__ += ["transpose", "unsqueeze", "unstack", "weighted_embedding", "zeros_like"]
__all__ += ["create_state", "dynamic_gru", "dynamic_lstm", "set_state", "shape", "sliding_auc"]
__all__ += ["equal", "greater_equal", "greater_than", "less_equal", "less_than", "logical_and"]
__all__ += ["logical_not", "logical_or", "logical_xor", "not_equal", "sequence_conv"]
__all__ += ["sequence_enumerate", "sequence_expand_as", "sequence_regroup", "sequence_reshape"]
__all__ += ["sequence_lengths", "sequence_nest", "sequence_repeat", "sequence_rows"]
__all__ += ["beam_search", "beam_search_decode", "is_empty"]
__all__ += ["create_lists", "list_count", "list_read", "list_write"]
__all__ += ["Branches", "cond", "print_value"]
__all__ += ["Loop", "array_length", "array_read", "array_write", "create_array", "undefined"]
__all__ += ["crf_decoding", "linear_chain_crf", "while_loop"]
__all__ += ["Recurrence", "gaussian_random", "shuffle_rows", "uniform_random", "where"]

arithmetic.OPERATORS.update(OPERATORS)

if not TYPE_CHECKING:  # type checkers report unknown names themselves
    __getattr__ = names.refuse_unknown("psrt.layers", "layer", __all__)
