"""Fusing bias and activation: `fc` followed by `relu` becomes one op, one pass over memory.

Bit-identical: the fused kernel adds the bias and cuts at zero in the order the two ops do. Forward
and backward are rewritten together; `x@GRAD` of the relu is never made.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from psrt.graph.ops import FUSED_ACTIVATIONS
from psrt.graph.passes.uses import Uses, rewritten
from psrt.graph.program import Op, Program


def fuse_activations(program: Program, keep: Collection[str] = ()) -> Program:
    """Fuse where no other op reads the value between the two."""
    uses = Uses(program)
    replaced: dict[int, Op | None] = {}
    for fc in program.ops:
        if fc.type == "fc" and not fc.attrs["activation"]:
            replaced.update(_fused(uses, fc, keep))
    return rewritten(program, replaced)


def _fused(uses: Uses, fc: Op, keep: Collection[str]) -> dict[int, Op | None]:
    (between,) = fc.outputs["out"]
    act = next((op for op in uses.readers(between) if op.type in FUSED_ACTIVATIONS), None)
    if act is None or between in keep:
        return {}
    fc_grad = next((op for op in uses.readers(between) if op.type == "fc_grad"), None)
    act_grad = uses.writer(fc_grad.inputs["out@GRAD"][0]) if fc_grad is not None else None
    if not uses.read_only_by(between, (act, fc_grad)) or not _backward_fits(
        uses, act, fc_grad, act_grad, keep
    ):
        return {}
    attrs = {"activation": act.type}
    fused: dict[int, Op | None] = {
        id(fc): dataclasses.replace(fc, outputs=act.outputs, attrs={**fc.attrs, **attrs}),
        id(act): None,
    }
    if fc_grad is not None and act_grad is not None:
        out = {"out": act.outputs["out"], "out@GRAD": act_grad.inputs["out@GRAD"]}
        both = {**fc_grad.attrs, **attrs}
        grad = dataclasses.replace(fc_grad, inputs={**fc_grad.inputs, **out}, attrs=both)
        fused |= {id(fc_grad): grad, id(act_grad): None}
    return fused


def _backward_fits(
    uses: Uses, act: Op, fc_grad: Op | None, act_grad: Op | None, keep: Collection[str]
) -> bool:
    """Return whether the gradients form this chain backwards, or there are none."""
    if fc_grad is None:
        return True
    if act_grad is None or act_grad.type != f"{act.type}_grad":
        return False
    (between,) = fc_grad.inputs["out@GRAD"]
    same = act_grad.inputs["out"] == act.outputs["out"]
    return same and between not in keep and uses.read_only_by(between, (fc_grad,))
