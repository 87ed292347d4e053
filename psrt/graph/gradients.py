"""Table of derivatives: op type → inputs and outputs of its gradient op.

Op `f` is differentiated by one op `f_grad`. It reads the vars a rule lists, and `<slot>@GRAD` of
the outputs in `through`; it writes `<slot>@GRAD` of the inputs in `of`, each of the type of its
var, or nothing ("") where no op needs it. The comments below are the formulas, with d for the
gradient of the output; `psrt.executor.compute` computes it. An op type without a rule (a metric)
stops the flow: nothing is trained through it.
"""

from __future__ import annotations

from dataclasses import dataclass

from psrt.graph.ops import OPS, ArgumentSlot, OpDef, slots


@dataclass(frozen=True)
class GradientRule:
    """Differentiation of one op type.

    `accumulates` implies that the first slot in `of` is a table: the gradient op adds to the
    gradient of the lookups before it (argument `before`), in place.
    """

    of: str
    reads: str
    through: str = "out"
    accumulates: bool = False

    @property
    def of_slots(self) -> list[str]:
        return self.of.split()

    @property
    def read_slots(self) -> list[str]:
        return self.reads.split()

    @property
    def through_slots(self) -> list[str]:
        return self.through.split()


BEFORE = "before"

RULES: dict[str, GradientRule] = {
    # e = d · activation'(out); dx = e wᵀ, dw = xᵀ e, db = Σ e
    "fc": GradientRule("x w bias", "x w out"),
    "matmul": GradientRule("x y", "x y"),  # alpha d yᵀ, alpha xᵀ d  each summed where broadcast
    "dot": GradientRule("x y", "x y"),  # d y, d x
    "elementwise_add": GradientRule("x y", "x y"),  # d, d            each summed over
    "elementwise_sub": GradientRule("x y", "x y"),  # d, −d           the dimensions in which
    "elementwise_mul": GradientRule("x y", "x y"),  # d y, d x        it was broadcast
    "elementwise_div": GradientRule("x y", "x y out"),  # d / y, −d out / y
    "elementwise_max": GradientRule("x y", "x y"),  # d where x > y, d elsewhere
    "elementwise_min": GradientRule("x y", "x y"),  # d where x < y, d elsewhere
    "elementwise_pow": GradientRule("x y", "x y out"),  # d y x^(y − 1), d out ln x
    "where": GradientRule("x y", "condition"),  # d where condition, and elsewhere
    "relu": GradientRule("x", "out"),  # d where out > 0
    "sigmoid": GradientRule("x", "out"),  # d out (1 − out)
    "tanh": GradientRule("x", "out"),  # d (1 − out²)
    "relu6": GradientRule("x", "out"),  # d where 0 < out < threshold
    "leaky_relu": GradientRule("x", "x"),  # d where x > 0, else alpha d
    "elu": GradientRule("x", "out"),  # d where out > 0, else d (out + alpha)
    "logsigmoid": GradientRule("x", "out"),  # d (1 − e^out)
    "hard_sigmoid": GradientRule("x", "out"),  # slope d where 0 < out < 1
    "gelu": GradientRule("x", "x"),  # d (Φ(x) + x φ(x))
    "gelu_tanh": GradientRule("x", "x"),  # d (s + x s (1 − s) (2u)′), s = sigmoid(2u)
    "softplus": GradientRule("x", "out"),  # d (1 − e^−out)
    "softsign": GradientRule("x", "out"),  # d (1 − |out|)²
    "swish": GradientRule("x", "x"),  # d (s + beta x s (1 − s)), s = sigmoid(beta x)
    "exp": GradientRule("x", "out"),  # d out
    "log": GradientRule("x", "x"),  # d / x
    "sqrt": GradientRule("x", "out"),  # d / 2 out
    "rsqrt": GradientRule("x", "out"),  # −d out³ / 2
    "square": GradientRule("x", "x"),  # 2 d x
    "abs": GradientRule("x", "x"),  # d sign(x)
    "reciprocal": GradientRule("x", "out"),  # −d out²
    "sin": GradientRule("x", "x"),  # d cos x
    "cos": GradientRule("x", "x"),  # −d sin x
    "pow": GradientRule("x", "x"),  # d factor x^(factor − 1)
    "clip": GradientRule("x", "x"),  # d where min < x < max
    "scale": GradientRule("x", ""),  # scale d
    "log_softmax": GradientRule("x", "out"),  # d − e^out Σ d
    "softmax": GradientRule("x", "out"),  # out (d − Σ d out)
    "sum": GradientRule("x", ""),  # d to each
    "concat": GradientRule("x", "x"),  # the parts of d
    "reshape": GradientRule("x", "x"),  # d in the shape of x
    "open_sizes": GradientRule("x", "x"),  # d in the shape of x
    "group_rows": GradientRule("x", "x"),  # d in the shape of x
    "stack": GradientRule("x", ""),  # the parts of d
    "slice": GradientRule("input", "input"),  # d in its place, else 0
    "slice_between": GradientRule("input", "input start end"),  # as slice
    "transpose": GradientRule("x", ""),  # d with its dimensions moved back
    "expand": GradientRule("x", "x"),  # d summed over the repetitions
    "cast": GradientRule("x", ""),  # d in the dtype of x
    "assign": GradientRule("x", ""),  # d
    "print_value": GradientRule("x", ""),  # d
    "gather": GradientRule("input", "input index"),  # rows of d added by index
    "gather_nd": GradientRule("input", "input index"),  # parts of d added by positions
    "embedding": GradientRule("table", "ids table", accumulates=True),  # rows of d added by id
    # as embedding, unpooled
    "slot_embeddings": GradientRule("table", "ids table argmax", accumulates=True),
    # as embedding; a pass makes it, and what was the gradient of each list and row
    "slot_rows": GradientRule("table lists rows", "ids table", accumulates=True),
    "weighted_embedding": GradientRule(  # value · d added by id, row · d
        "table values", "ids values table", accumulates=True
    ),
    # d, d / n, d / √n, or d at the row that was taken
    "sequence_pool": GradientRule("x", "x argmax"),
    "sequence_softmax": GradientRule("input", "out"),  # out (d − Σ d out), Σ over each example
    "sequence_expand": GradientRule("x", "y"),  # d summed over each example
    "sequence_concat": GradientRule("input", "input"),  # the parts of d
    "sequence_reverse": GradientRule("x", ""),  # d reversed
    "sequence_slice": GradientRule("input", "input offset"),  # d in its place, else 0
    "sequence_pad": GradientRule("x", "x"),  # d without the padding, 0 for what was cut
    "sequence_unpad": GradientRule("x", "x"),  # d padded with zeros
    "sequence_rows": GradientRule("x", "x"),  # d
    "sequence_context": GradientRule("input", "input"),  # the parts of d, added by element
    "sequence_reshape": GradientRule("input", "input"),  # d in the shape of input
    "sequence_regroup": GradientRule("x", "x"),  # d in the shape of x
    "sequence_nest": GradientRule("input", ""),  # d
    "sequence_repeat": GradientRule("x", "x y"),  # d summed over the repetitions of each list
    # back through time: derivatives of the formulas in psrt.graph.ops.repeating
    "lstm": GradientRule("input weight bias h_0 c_0", "input weight bias h_0 c_0 out gates"),
    "gru": GradientRule("input weight bias h_0", "input weight bias h_0 out gates"),
    "recurrence": GradientRule("x", "x out"),  # by the backward of the step, last element first
    # d (marginal − onehot(label)), and so for pairs of tags
    "linear_chain_crf": GradientRule("input transition", "input transition label alpha"),
    "while_loop": GradientRule("x", "x"),  # by the backward of the turns, last one first
    "array_write": GradientRule("array x", "array x i condition"),  # d without element i, d there
    "array_read": GradientRule("array", "array i"),  # d at element i, else 0
    "cos_sim": GradientRule("x y", "x y out"),  # d (y / |x||y| − out x / |x|²), and so for y
    "fm_interaction": GradientRule("input", "input sums"),  # d (Σ v − v)
    "sigmoid_cross_entropy_with_logits": GradientRule("x", "x label"),  # d (sigmoid(x) − label)
    "sigmoid_loss": GradientRule("x", "slope"),  # d slope
    # 2 d (input − label) and its negative
    "square_error_cost": GradientRule("input label", "input label"),
    "cross_entropy": GradientRule("input", "input label"),  # −d / input at the label
    # d (softmax − onehot(label))
    "softmax_with_cross_entropy": GradientRule("logits", "softmax label"),
    # d (input − label) cut to ±delta, negative
    "huber_loss": GradientRule("input label", "input label"),
    "smooth_l1": GradientRule("x y", "x y"),  # σ² d (x − y) cut to ±1, negative
    # d (1 − 2 label) where input is within the margin
    "hinge_loss": GradientRule("input", "input label"),
    "log_loss": GradientRule("input", "input label"),  # d ((1 − z) / (1 − p + ε) − z / (p + ε))
    # d (σ(left − right) − label), negative
    "rank_loss": GradientRule("left right", "label left right"),
    "margin_rank_loss": GradientRule("left right", "label out"),  # −d label where out > 0, negative
    # d σ(x_j − x_label) / (classes − 1); label: −Σ
    "bpr_loss": GradientRule("input", "input label"),
    "in_batch_softmax_loss": GradientRule("user item", "user item softmax"),  # e item, eᵀ user
    "row_dot": GradientRule("input w bias", "input w"),  # Σ d w, d x, d
    # d σ(x), label: d (σ(x) − 1)
    "noise_contrastive_loss": GradientRule("logits", "logits log_expected"),
    "path_loss": GradientRule("logits", "logits signs"),  # −d sign σ(−sign logit)
    # d (softmax − 1), d softmax
    "sampled_softmax_loss": GradientRule("true_logits logits", "softmax"),
    "mean": GradientRule("x", "x"),  # d / number of elements
    "reduce_sum": GradientRule("x", "x"),  # d along the summed dimensions
    "reduce_mean": GradientRule("x", "x"),  # d / n along them
    "reduce_max": GradientRule("x", "x out"),  # d wherever x equals the extreme
    "reduce_min": GradientRule("x", "x out"),  # as reduce_max
    "reduce_prod": GradientRule("x", "x"),  # d · the product of the others
    "cumsum": GradientRule("x", ""),  # running sums of d in the other direction
    "topk": GradientRule("input", "input indices"),  # d at the indices, else 0
    "l2_normalize": GradientRule("x", "out norm"),  # (d − out Σ d out) / norm
    # as fc, over the window of a filter
    "conv2d": GradientRule("input filter bias", "input filter out"),
    "pool2d": GradientRule("input", "input argmax"),  # d at the maximum, or d / n to each
    # batch_norm: scale inverse (d − mean d − z mean(d z)), z = inverse (input − mean)
    "batch_norm": GradientRule("input scale bias", "input scale saved_mean saved_inverse"),
    # as batch_norm, by row
    "layer_norm": GradientRule("input scale bias", "input scale mean inverse"),
    "shuffle_rows": GradientRule("x", "order"),  # rows of d where they came from
    "dropout": GradientRule("x", "mask"),  # d scaled as what was kept
}


def gradient_type(type: str) -> str:
    return f"{type}_grad"


def _slots(names: list[str], forward: OpDef, suffix: str = "") -> tuple[ArgumentSlot, ...]:
    known = {slot.name: slot for slot in forward.inputs + forward.outputs}
    return tuple(
        ArgumentSlot(name + suffix, known[name].many, known[name].optional) for name in names
    )


def _gradient_def(type: str, rule: GradientRule) -> OpDef:
    forward = OPS[type]
    inputs = _slots(rule.read_slots, forward) + _slots(rule.through_slots, forward, "@GRAD")
    if rule.accumulates:
        inputs += (ArgumentSlot(BEFORE, optional=True),)
    return OpDef(gradient_type(type), inputs, _slots(rule.of_slots, forward, "@GRAD"), infer=None)


OPS.update({gradient_type(type): _gradient_def(type, rule) for type, rule in RULES.items()})


# `fc_grad` in parts that need not wait for each other, see `psrt.graph.passes.products`.
OPS.update(
    {
        type: OpDef(type, slots(inputs), slots(outputs), infer=None)
        for type, inputs, outputs in (
            ("fc_grad_rows", "out out@GRAD", "rows@GRAD? bias@GRAD?"),
            ("fc_grad_w", "x rows@GRAD", "w@GRAD"),
            ("fc_grad_x", "x w rows@GRAD", "x@GRAD"),
        )
    }
)
