"""Layer functions, public as `psrt.layers`: each appends ops to the current program.

Call them inside `with psrt.program():`. All raise a `ProgramError` for arguments that do not fit;
it names the layer, the argument, both shapes and the caller's line. `rows` is the number of
examples, dimension 0 of a batch; a ragged var has n elements of all examples there. Floats are
float32 (a float64 var gives float64), ids and classes int64. A docstring that names no shapes keeps
shape and dtype of `x`, which may be ragged.

By family: inputs · dense · elementwise · lookups · interactions · losses · ranking · sampling ·
metrics · math · norms · reductions · shapes · sequence · images · random · values.
"""

from psrt.graph.layers.dense import dot, fc, matmul, mul
from psrt.graph.layers.elementwise import (
    elementwise_add,
    elementwise_div,
    elementwise_max,
    elementwise_min,
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
from psrt.graph.layers.metrics import accuracy, auc, batch_auc, mae, precision_recall, rmse
from psrt.graph.layers.norms import batch_norm, layer_norm
from psrt.graph.layers.random import dropout
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
from psrt.graph.layers.sampling import (
    hsigmoid,
    nce,
    negative_sampling_loss,
    sampled_softmax_with_cross_entropy,
)
from psrt.graph.layers.sequence import (
    sequence_concat,
    sequence_expand,
    sequence_first_step,
    sequence_last_step,
    sequence_mask,
    sequence_pad,
    sequence_pool,
    sequence_reverse,
    sequence_slice,
    sequence_softmax,
    sequence_unpad,
)
from psrt.graph.layers.shapes import (
    concat,
    expand,
    flatten,
    reshape,
    slice,
    split,
    squeeze,
    stack,
    transpose,
    unsqueeze,
    unstack,
)
from psrt.graph.layers.values import (
    assign,
    cast,
    fill_constant,
    fill_constant_batch_size_like,
    gather,
    one_hot,
    ones_like,
    zeros_like,
)

__all__ = ["abs", "ceil", "clip", "cos", "elu", "exp", "floor", "gelu", "hard_sigmoid"]
__all__ += ["leaky_relu", "log", "log_softmax", "logsigmoid", "pow", "reciprocal", "relu", "relu6"]
__all__ += ["round", "rsqrt", "scale", "sigmoid", "sign", "sin", "softmax", "softplus", "softsign"]
__all__ += ["sqrt", "square", "swish", "tanh"]
__all__ += ["accuracy", "auc", "batch_auc", "mae", "precision_recall", "rmse"]
__all__ += ["argmax", "argmin", "cumsum", "l2_normalize", "mean", "reduce_max", "reduce_mean"]
__all__ += ["reduce_min", "reduce_prod", "reduce_sum", "topk"]
__all__ += ["assign", "cast", "fill_constant", "fill_constant_batch_size_like", "gather", "one_hot"]
__all__ += ["batch_norm", "layer_norm", "ones_like", "zeros_like"]
__all__ += ["bpr_loss", "in_batch_softmax_loss", "margin_rank_loss", "rank_loss"]
__all__ += ["concat", "expand", "flatten", "reshape", "slice", "split", "squeeze", "stack"]
__all__ += ["conv2d", "pool2d", "simple_img_conv_pool", "transpose", "unsqueeze", "unstack"]
__all__ += ["cos_sim", "create_parameter", "data", "fm_interaction"]
__all__ += ["cross_entropy", "hinge_loss", "huber_loss", "log_loss"]
__all__ += ["sigmoid_cross_entropy_with_logits", "smooth_l1", "softmax_with_cross_entropy"]
__all__ += ["dot", "dropout", "fc", "matmul", "mul", "square_error_cost"]
__all__ += ["elementwise_add", "elementwise_div", "elementwise_max", "elementwise_min"]
__all__ += ["elementwise_mul", "elementwise_pow", "elementwise_sub", "sums"]
__all__ += ["embedding", "slot_embeddings", "weighted_embedding"]
__all__ += ["hsigmoid", "nce", "negative_sampling_loss", "sampled_softmax_with_cross_entropy"]
__all__ += ["sequence_concat", "sequence_expand", "sequence_first_step", "sequence_last_step"]
__all__ += ["sequence_mask", "sequence_pad", "sequence_pool", "sequence_reverse", "sequence_slice"]
__all__ += ["sequence_softmax", "sequence_unpad"]
