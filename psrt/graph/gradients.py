"""The table of derivatives: op type → what its gradient op reads and produces.

Op `f` is differentiated by one op `f_grad`. Beside the vars a rule lists it reads `<slot>@GRAD` of
the outputs in `through`; it writes `<slot>@GRAD` of the inputs in `of`, each of the type of its
var, or nothing ("") where nobody needs it. The right column below says what is computed, with d for
the gradient of the output; `psrt.executor.compute` does it. An op type without a rule (a metric)
stops the flow: nothing is trained through it.
"""

from __future__ import annotations

from dataclasses import dataclass

from psrt.graph.ops import OPS, OpDef, Slot, slots


@dataclass(frozen=True)
class Rule:
    """How one op type is differentiated.

    `accumulates` implies that the first slot in `of` is a table: the gradient op adds to what the
    lookups before it (argument `before`) found, in the same memory.
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

RULES: dict[str, Rule] = {
    "fc": Rule("x w bias", "x w out"),  # e = d · activation'(out); dx = e wᵀ, dw = xᵀ e, db = Σ e
    "matmul": Rule("x y", "x y"),  # alpha d yᵀ, alpha xᵀ d  each summed where broadcast
    "dot": Rule("x y", "x y"),  # d y, d x
    "elementwise_add": Rule("x y", "x y"),  # d, d            each summed over
    "elementwise_sub": Rule("x y", "x y"),  # d, −d           the dimensions in which
    "elementwise_mul": Rule("x y", "x y"),  # d y, d x        it was broadcast
    "elementwise_div": Rule("x y", "x y out"),  # d / y, −d out / y
    "elementwise_max": Rule("x y", "x y"),  # d where x > y, d elsewhere
    "elementwise_min": Rule("x y", "x y"),  # d where x < y, d elsewhere
    "elementwise_pow": Rule("x y", "x y out"),  # d y x^(y − 1), d out ln x
    "relu": Rule("x", "out"),  # d where out > 0
    "sigmoid": Rule("x", "out"),  # d out (1 − out)
    "tanh": Rule("x", "out"),  # d (1 − out²)
    "relu6": Rule("x", "out"),  # d where 0 < out < threshold
    "leaky_relu": Rule("x", "x"),  # d where x > 0, else alpha d
    "elu": Rule("x", "out"),  # d where out > 0, else d (out + alpha)
    "logsigmoid": Rule("x", "out"),  # d (1 − e^out)
    "hard_sigmoid": Rule("x", "out"),  # slope d where 0 < out < 1
    "gelu": Rule("x", "x"),  # d (Φ(x) + x φ(x))
    "gelu_tanh": Rule("x", "x"),  # d (s + x s (1 − s) (2u)′), s = sigmoid(2u)
    "softplus": Rule("x", "out"),  # d (1 − e^−out)
    "softsign": Rule("x", "out"),  # d (1 − |out|)²
    "swish": Rule("x", "x"),  # d (s + beta x s (1 − s)), s = sigmoid(beta x)
    "exp": Rule("x", "out"),  # d out
    "log": Rule("x", "x"),  # d / x
    "sqrt": Rule("x", "out"),  # d / 2 out
    "rsqrt": Rule("x", "out"),  # −d out³ / 2
    "square": Rule("x", "x"),  # 2 d x
    "abs": Rule("x", "x"),  # d sign(x)
    "reciprocal": Rule("x", "out"),  # −d out²
    "sin": Rule("x", "x"),  # d cos x
    "cos": Rule("x", "x"),  # −d sin x
    "pow": Rule("x", "x"),  # d factor x^(factor − 1)
    "clip": Rule("x", "x"),  # d where min < x < max
    "scale": Rule("x", ""),  # scale d
    "log_softmax": Rule("x", "out"),  # d − e^out Σ d
    "softmax": Rule("x", "out"),  # out (d − Σ d out)
    "sum": Rule("x", ""),  # d to each
    "concat": Rule("x", "x"),  # the parts of d
    "reshape": Rule("x", "x"),  # d in the shape of x
    "stack": Rule("x", ""),  # the parts of d
    "slice": Rule("input", "input"),  # d in its place, else 0
    "transpose": Rule("x", ""),  # d with its dimensions moved back
    "expand": Rule("x", "x"),  # d summed over the repetitions
    "cast": Rule("x", ""),  # d in the dtype of x
    "assign": Rule("x", ""),  # d
    "gather": Rule("input", "input index"),  # rows of d added by index
    "embedding": Rule("table", "ids table", accumulates=True),  # rows of d added by id
    "slot_embeddings": Rule("table", "ids table argmax", accumulates=True),  # the same, unpooled
    "weighted_embedding": Rule(  # value · d added by id, row · d
        "table values", "ids values table", accumulates=True
    ),
    "sequence_pool": Rule("x", "x argmax"),  # d, d / n, d / √n, or d at the row that was taken
    "sequence_softmax": Rule("input", "out"),  # out (d − Σ d out), Σ over each example
    "sequence_expand": Rule("x", "y"),  # d summed over each example
    "sequence_concat": Rule("input", "input"),  # the parts of d
    "sequence_reverse": Rule("x", ""),  # d reversed
    "sequence_slice": Rule("input", "input offset"),  # d in its place, else 0
    "sequence_pad": Rule("x", "x"),  # d without the padding, 0 for what was cut
    "sequence_unpad": Rule("x", "x"),  # d padded with zeros
    "cos_sim": Rule("x y", "x y out"),  # d (y / |x||y| − out x / |x|²), and so for y
    "fm_interaction": Rule("input", "input sums"),  # d (Σ v − v)
    "sigmoid_cross_entropy_with_logits": Rule("x", "x label"),  # d (sigmoid(x) − label)
    "sigmoid_loss": Rule("x", "slope"),  # d slope
    "square_error_cost": Rule("input label", "input label"),  # 2 d (input − label) and its negative
    "cross_entropy": Rule("input", "input label"),  # −d / input at the label
    "softmax_with_cross_entropy": Rule("logits", "softmax label"),  # d (softmax − onehot(label))
    "huber_loss": Rule("input label", "input label"),  # d (input − label) cut to ±delta, negative
    "smooth_l1": Rule("x y", "x y"),  # the same, σ² d (x − y) cut to ±1
    "hinge_loss": Rule("input", "input label"),  # d (1 − 2 label) where input is within the margin
    "log_loss": Rule("input", "input label"),  # d ((1 − z) / (1 − p + ε) − z / (p + ε))
    "rank_loss": Rule("left right", "label left right"),  # d (σ(left − right) − label), negative
    "margin_rank_loss": Rule("left right", "label out"),  # −d label where out > 0, negative
    "bpr_loss": Rule("input", "input label"),  # d σ(x_j − x_label) / (classes − 1); label: −Σ
    "in_batch_softmax_loss": Rule("user item", "user item softmax"),  # e item, eᵀ user
    "row_dot": Rule("input w bias", "input w"),  # Σ d w, d x, d
    "noise_contrastive_loss": Rule("logits", "logits log_expected"),  # d σ(x), label: d (σ(x) − 1)
    "path_loss": Rule("logits", "logits signs"),  # −d sign σ(−sign logit)
    "sampled_softmax_loss": Rule("true_logits logits", "softmax"),  # d (softmax − 1), d softmax
    "mean": Rule("x", "x"),  # d / number of elements
    "reduce_sum": Rule("x", "x"),  # d along the summed dimensions
    "reduce_mean": Rule("x", "x"),  # d / n along them
    "reduce_max": Rule("x", "x out"),  # d wherever x equals the extreme
    "reduce_min": Rule("x", "x out"),  # the same
    "reduce_prod": Rule("x", "x"),  # d · the product of the others
    "cumsum": Rule("x", ""),  # running sums of d in the other direction
    "topk": Rule("input", "input indices"),  # d at the indices, else 0
    "l2_normalize": Rule("x", "out norm"),  # (d − out Σ d out) / norm
    "conv2d": Rule("input filter bias", "input filter out"),  # as fc, over what filters see
    "pool2d": Rule("input", "input argmax"),  # d at the maximum, or d / n to each of the window
    "batch_norm": Rule(  # scale inverse (d − mean d − z mean(d z)), z = inverse (input − mean)
        "input scale bias", "input scale saved_mean saved_inverse"
    ),
    "layer_norm": Rule("input scale bias", "input scale mean inverse"),  # the same, by row
    "dropout": Rule("x", "mask"),  # d scaled as what was kept
}


def gradient_type(type: str) -> str:
    return f"{type}_grad"


def _slots(names: list[str], forward: OpDef, suffix: str = "") -> tuple[Slot, ...]:
    known = {slot.name: slot for slot in forward.inputs + forward.outputs}
    return tuple(Slot(name + suffix, known[name].many, known[name].optional) for name in names)


def _gradient_def(type: str, rule: Rule) -> OpDef:
    forward = OPS[type]
    inputs = _slots(rule.read_slots, forward) + _slots(rule.through_slots, forward, "@GRAD")
    if rule.accumulates:
        inputs += (Slot(BEFORE, optional=True),)
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
