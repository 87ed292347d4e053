"""Table of Fluid 1.8's layers that psrt has, with Fluid's arguments in Fluid's order.

A line is a signature. An argument becomes psrt's of that name; `input: x` becomes x; `any` is
ignored, for it changes no number; `target` is the var that gets the result; an `activation` follows
the layer; `fixed` raises
`ProgramError` unless it has the value written here, the only one psrt has. `param_attr`,
`bias_attr` and `attr` become psrt's declarations. None leaves an argument at psrt's default. Every
layer also takes `name`.
"""

from __future__ import annotations

SIGNATURES = """
argmax(x, axis=0)
argmin(x, axis=0)
batch_norm(input, act=None, is_test=False, momentum=0.9, epsilon=1e-5, param_attr=None,
    bias_attr=None, data_layout: fixed="NCHW", in_place: any=False, moving_mean_name=None,
    moving_variance_name=None, do_model_average_for_mean_and_var: any=True, use_global_stats=False)
bpr_loss(input, label)
cast(x, dtype)
clip(x, min, max)
conv2d(input, num_filters, filter_size, stride=1, padding=0, dilation=1, groups=None,
    param_attr=None, bias_attr=None, use_cudnn: any=True, act=None, data_format: fixed="NCHW")
cos_sim(X, Y)
cross_entropy(input, label, soft_label=False, ignore_index=-100)
cumsum(x, axis=None, exclusive=None, reverse=None)
dropout(x, dropout_prob, is_test=False, seed=None,
    dropout_implementation="downgrade_in_infer")
dynamic_gru(input, size, param_attr=None, bias_attr=None, is_reverse=False,
    gate_activation="sigmoid", candidate_activation="tanh", h_0=None, origin_mode=False)
dynamic_lstm(input, size, h_0=None, c_0=None, param_attr=None, bias_attr=None, use_peepholes=True,
    is_reverse=False, gate_activation="sigmoid", cell_activation="tanh",
    candidate_activation="tanh", dtype: any="float32")
elementwise_add(x, y, axis=-1, act=None)
elementwise_div(x, y, axis=-1, act=None)
elementwise_max(x, y, axis=-1, act=None)
elementwise_min(x, y, axis=-1, act=None)
elementwise_mod(x, y, axis=-1, act=None)
elementwise_mul(x, y, axis=-1, act=None)
elementwise_pow(x, y, axis=-1, act=None)
elementwise_sub(x, y, axis=-1, act=None)
expand(x, expand_times)
fc(input, size, num_flatten_dims=1, param_attr=None, bias_attr=None, act=None)
fill_constant_batch_size_like(input, shape, dtype, value, input_dim_idx: fixed=0,
    output_dim_idx: fixed=0, force_cpu: any=False)
flatten(x, axis=1)
gather(input, index, overwrite: any=True)
gather_nd(input, index)
hsigmoid(input, label, num_classes, param_attr=None, bias_attr=None, path_table=None,
    path_code=None, is_custom: any=False, is_sparse=False)
huber_loss(input, label, delta)
is_empty(x, cond: target=None)
l2_normalize(x, axis, epsilon=1e-12)
layer_norm(input, scale=True, shift=True, begin_norm_axis=1, epsilon=1e-5, param_attr=None,
    bias_attr=None, act=None)
log_loss(input, label, epsilon=1e-4)
logical_and(x, y, out: target=None)
logical_not(x, out: target=None)
logical_or(x, y, out: target=None)
logical_xor(x, y, out: target=None)
margin_rank_loss(label, left, right, margin=0.1)
matmul(x, y, transpose_x=False, transpose_y=False, alpha=1.0)
mean(x)
mul(x, y, x_num_col_dims=1, y_num_col_dims=1)
nce(input, label, num_total_classes, sample_weight: fixed=None, param_attr=None, bias_attr=None,
    num_neg_samples=None, sampler="uniform", custom_dist=None, seed=0, is_sparse=False)
one_hot(input, depth, allow_out_of_range: fixed=False)
ones_like(x, out: fixed=None)
pool2d(input, pool_size=-1, pool_type="max", pool_stride=1, pool_padding=0, global_pooling=False,
    use_cudnn: any=True, ceil_mode=False, exclusive=True, data_format: fixed="NCHW")
rank_loss(label, left, right)
reduce_max(input: x, dim=None, keep_dim=False)
reduce_mean(input: x, dim=None, keep_dim=False)
reduce_min(input: x, dim=None, keep_dim=False)
reduce_prod(input: x, dim=None, keep_dim=False)
reduce_sum(input: x, dim=None, keep_dim=False)
reshape(x, shape, actual_shape: fixed=None, act: activation=None, inplace: any=False)
scale(x, scale=1.0, bias=0.0, bias_after_scale=True, act=None)
sequence_concat(input)
sequence_conv(input, num_filters, filter_size=3, filter_stride: fixed=1, padding: fixed=True,
    padding_start=None, bias_attr=None, param_attr=None, act=None)
sequence_enumerate(input, win_size, pad_value=0)
sequence_expand_as(x, y)
sequence_mask(x, maxlen=None, dtype="int64")
sequence_reshape(input, new_dim)
sequence_reverse(x)
sequence_slice(input, offset, length)
sequence_softmax(input, use_cudnn: any=False)
sequence_unpad(x, length)
shape(input)
sigmoid_cross_entropy_with_logits(x, label, ignore_index=-100, normalize=False)
slice(input, axes, starts, ends)
smooth_l1(x, y, inside_weight: fixed=None, outside_weight: fixed=None, sigma=None)
softmax(input: x, use_cudnn: any=False, axis=-1)
softmax_with_cross_entropy(logits, label, soft_label=False, ignore_index=-100,
    numeric_stable_mode: any=True, return_softmax=False, axis: fixed=-1)
split(input, num_or_sections, dim=-1)
sums(input, out: target=None)
topk(input, k)
unsqueeze(input, axes)
unstack(x, axis=0, num: any=None)
zeros_like(x, out: fixed=None)
"""

ALIKE = """
abs ceil cos elu exp floor gelu hard_sigmoid leaky_relu log log_softmax logsigmoid pow reciprocal
relu relu6 round rsqrt sigmoid sign sin softplus softsign sqrt square swish tanh
"""
"""Functions of one var, with equal arguments in Fluid and psrt."""

OWN = """
batch_auc dot fm_interaction hinge_loss in_batch_softmax_loss mae negative_sampling_loss
precision_recall rmse sequence_rows sliding_auc slot_embeddings
weighted_embedding
"""
"""Layers of psrt that Fluid does not have: arguments are psrt's, except `param_attr` and
`bias_attr`."""

INSTEAD = {
    "lstm": "It is that of GPUs; use layers.dynamic_lstm.",
    "sampled_softmax_with_cross_entropy": "Fluid samples from logits that were computed for all "
    "classes; psrt.layers.sampled_softmax_with_cross_entropy computes those of the sample alone.",
    "py_func": "Ops are psrt's own; compute in Python on what exe.run fetches.",
}
"""Layers of Fluid that psrt does not have, with psrt's substitutes."""
