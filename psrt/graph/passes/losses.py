"""Fusing a loss with its gradient: one kernel computes both from the logits.

`sigmoid_cross_entropy_with_logits` computes σ(x) for its loss and again for its gradient; the fused
op keeps the slope σ(x) − z, and the gradient op multiplies. Bit-identical: the products and their
order do not change.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from psrt.graph.passes.uses import Uses, rewritten
from psrt.graph.program import Op, Program, Var

_LOSS = "sigmoid_cross_entropy_with_logits"


def fuse_losses(program: Program, keep: Collection[str] = ()) -> Program:
    """Fuse every binary cross-entropy that has a gradient and counts all examples."""
    uses = Uses(program)
    replaced: dict[int, Op | None] = {}
    slopes: list[Var] = []
    for grad in program.ops:
        if grad.type != f"{_LOSS}_grad" or grad.attrs["ignore_index"] is not None:
            continue
        loss = _forward_of(uses, grad)
        if loss is None or loss.attrs["normalize"]:
            continue
        slope = dataclasses.replace(
            program.vars[loss.outputs["out"][0]], name=f"{loss.outputs['out'][0]}@SLOPE"
        )
        slopes.append(slope)
        made = {**loss.outputs, "slope": (slope.name,)}
        replaced[id(loss)] = dataclasses.replace(loss, type="sigmoid_loss", outputs=made, attrs={})
        read = {"slope": (slope.name,), "out@GRAD": grad.inputs["out@GRAD"]}
        replaced[id(grad)] = dataclasses.replace(
            grad, type="sigmoid_loss_grad", inputs=read, attrs={}
        )
    return rewritten(program, replaced, slopes)


def _forward_of(uses: Uses, grad: Op) -> Op | None:
    """The op that `grad` differentiates: the loss of its layer."""
    candidates = uses.readers(grad.inputs["x"][0])
    return next((op for op in candidates if op.type == _LOSS and op.layer == grad.layer), None)
