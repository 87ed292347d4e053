"""From the values of replicas to the value of the batch, for every var of a program.

An op that reduces over examples determines the rule: a sum over examples is the sum of the
replicas' sums, a mean their mean. Ops on reduced values keep the rule where that is valid: twice a
sum is the sum of doubled values, but the square of a mean is not the mean of the squares. Pure.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import TypeAlias

from psrt.graph.backward import loss_gradients
from psrt.graph.gradients import RULES
from psrt.graph.ops import ROWS
from psrt.graph.program import Op, Program, gradient_name


class Merge(enum.Enum):
    """`ROWS`: concatenated. `SAME`: that of any replica. `LAST`: that of the last replica, which
    includes all examples. `MEAN`: weighted by shares. `APART`: cannot be merged."""

    ROWS = 0
    SAME = 1
    LAST = 2
    MEAN = 3
    SUM = 4
    MAX = 5
    MIN = 6
    PROD = 7
    APART = 8


Found: TypeAlias = dict[str, Merge]
Keeps: TypeAlias = Callable[[Op, Merge, Sequence[Merge]], bool]
"""Arguments: an op, the rule of its inputs other than `SAME`, and the rule of each input."""

_ALIKE = ("draw_classes", "ones_like", "zeros_like")  # independent of the values they read

_OVER_EXAMPLES = {
    "accuracy": Merge.MEAN,
    "batch_auc": Merge.MEAN,
    "matmul": Merge.SUM,
    "mean": Merge.MEAN,
    "reduce_max": Merge.MAX,
    "reduce_mean": Merge.MEAN,
    "reduce_min": Merge.MIN,
    "reduce_prod": Merge.PROD,
    "reduce_sum": Merge.SUM,
}


def merges(program: Program) -> Found:
    """The rule of each var; a loss without a rule has `MEAN`, which replicas minimise."""
    losses = {program.vars[name].gradient_of for name in loss_gradients(program)}
    found = {
        var.name: Merge.ROWS if ROWS in var.shape else Merge.SAME for var in program.vars.values()
    }
    for op in program.ops:
        for name in op.writes():
            if op.role != "optimize":
                merge = _merge_of(op, name, program, found)
                is_loss = merge is Merge.APART and name in losses
                found[name] = Merge.MEAN if is_loss else merge
    return found


def _merge_of(op: Op, name: str, program: Program, found: Found) -> Merge:
    var, reads = program.vars[name], [found[read] for read in op.reads()]
    if ROWS in var.shape:
        return Merge.ROWS if var.shape.count(ROWS) == 1 and var.shape[0] == ROWS else Merge.APART
    if op.inputs.keys() & op.outputs.keys():
        return Merge.LAST
    if var.gradient_of:
        return _of_gradient(op, name, var.gradient_of, program, found)
    if op.type in _ALIKE or all(merge is Merge.SAME for merge in reads):
        return Merge.SAME
    counted = [program.vars[read].shape.count(ROWS) for read in op.reads()]
    if any(counted):
        return Merge.APART if max(counted) > 1 else _OVER_EXAMPLES.get(op.type, Merge.APART)
    return _of_values(op, reads)


def _of_gradient(op: Op, name: str, source: str, program: Program, found: Found) -> Merge:
    """The rule of a gradient without rows: a sum, since it is weighted by its replica's share."""
    if source not in program.parameters:
        merge = found[source]
        if merge is Merge.SUM:  # its loss is a sum, whose gradient is 1 in each replica
            return Merge.MEAN
        return Merge.APART if merge in (Merge.APART, Merge.PROD) else Merge.SUM
    rule = RULES.get(op.type.removesuffix("_grad"))
    is_added = name == gradient_name(source) or op.role == "clip_and_decay"
    return Merge.SAME if is_added or (rule is not None and rule.accumulates) else Merge.SUM


def _of_values(op: Op, reads: Sequence[Merge]) -> Merge:
    """The rule of an op on values without rows."""
    merges = {merge for merge in reads if merge is not Merge.SAME}
    if len(merges) > 1:
        return Merge.APART
    (merge,) = merges
    if merge is Merge.LAST:
        return merge
    keeps = _KEEPS.get(op.type)
    return merge if keeps is not None and keeps(op, merge, reads) else Merge.APART


# --- ops that keep a rule -------------------------------------------------------------------------


def _is_linear(op: Op, merge: Merge, reads: Sequence[Merge]) -> bool:
    """Linear in one input."""
    return merge in (Merge.MEAN, Merge.SUM) and reads.count(merge) == 1


def _adds(op: Op, merge: Merge, reads: Sequence[Merge]) -> bool:
    """Addition: an input that is the same in all replicas would be summed once for each."""
    return merge is Merge.MEAN or (merge is Merge.SUM and Merge.SAME not in reads)


def _copies(op: Op, merge: Merge, reads: Sequence[Merge]) -> bool:
    return Merge.SAME not in reads or merge in (Merge.MEAN, Merge.MAX, Merge.MIN)


def _casts(op: Op, merge: Merge, reads: Sequence[Merge]) -> bool:
    """Casts, except from a mean to integers."""
    return merge is not Merge.MEAN or op.attrs["dtype"] != "int64"


def _scales(op: Op, merge: Merge, reads: Sequence[Merge]) -> bool:
    if merge in (Merge.MAX, Merge.MIN):
        return bool(op.attrs["scale"] > 0)
    return merge is Merge.MEAN or (merge is Merge.SUM and op.attrs["bias"] == 0)


def _divides(op: Op, merge: Merge, reads: Sequence[Merge]) -> bool:
    return reads[0] is merge and _is_linear(op, merge, reads)


def _multiplies_rows(op: Op, merge: Merge, reads: Sequence[Merge]) -> bool:
    return merge is Merge.MEAN and reads.count(merge) == 1 and not op.attrs["activation"]


def _is(kept: Merge) -> Keeps:
    return lambda op, merge, reads: merge is kept


_KEEPS: dict[str, Keeps] = {
    **dict.fromkeys(("assign", "concat", "expand", "reshape", "slice"), _copies),
    **dict.fromkeys(("stack", "transpose"), _copies),
    **dict.fromkeys(("elementwise_add", "elementwise_sub", "sum"), _adds),
    **dict.fromkeys(("cumsum", "elementwise_mul", "matmul"), _is_linear),
    **dict.fromkeys(("mean", "reduce_mean", "reduce_sum"), _is_linear),
    "cast": _casts,
    "elementwise_div": _divides,
    "fc": _multiplies_rows,
    "reduce_max": _is(Merge.MAX),
    "reduce_min": _is(Merge.MIN),
    "reduce_prod": _is(Merge.PROD),
    "scale": _scales,
}
