"""The table of derivatives: op type → what its gradient op reads and produces.

Op `f` is differentiated by one op `f_grad`. Beside the vars a rule lists it reads `<slot>@GRAD` of
the outputs in `through`; it writes `<slot>@GRAD` of the inputs in `of`, each of the type of its
var, or nothing ("") where nobody needs it. The right column below says what is computed, with d for
the gradient of the output; `psrt.executor.compute` does it. An op type without a rule (a metric)
stops the flow: nothing is trained through it.
"""

from __future__ import annotations

from dataclasses import dataclass

from psrt.graph.ops.table import OPS, OpDef, Slot


@dataclass(frozen=True)
class Rule:
    """How one op type is differentiated.

    `accumulates` implies that there is one slot in `of`, a table: the gradient op adds to what the
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
    "elementwise_add": Rule("x y", "x y"),  # d, d            each summed over
    "elementwise_sub": Rule("x y", "x y"),  # d, −d           the dimensions in which
    "elementwise_mul": Rule("x y", "x y"),  # d y, d x        it was broadcast
    "elementwise_div": Rule("x y", "x y"),  # d / y, −d x / y²
    "relu": Rule("x", "out"),  # d where out > 0
    "sigmoid": Rule("x", "out"),  # d out (1 − out)
    "tanh": Rule("x", "out"),  # d (1 − out²)
    "softmax": Rule("x", "out"),  # out (d − Σ d out)
    "sum": Rule("x", ""),  # d to each
    "concat": Rule("x", "x"),  # the parts of d
    "reshape": Rule("x", "x"),  # d in the shape of x
    "embedding": Rule("table", "ids table", accumulates=True),  # rows of d added by id
    "slot_embeddings": Rule("table", "ids table argmax", accumulates=True),  # the same, unpooled
    "sequence_pool": Rule("x", "x argmax"),  # d, d / n, or d at the first maximum
    "sigmoid_cross_entropy_with_logits": Rule("x", "x label"),  # d (sigmoid(x) − label)
    "square_error_cost": Rule("input label", "input label"),  # 2 d (input − label) and its negative
    "cross_entropy": Rule("input", "input label"),  # −d / input at the label
    "softmax_with_cross_entropy": Rule("logits", "softmax label"),  # d (softmax − onehot(label))
    "mean": Rule("x", "x"),  # d / number of elements
    "reduce_sum": Rule("x", "x"),  # d along the summed dimensions
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
