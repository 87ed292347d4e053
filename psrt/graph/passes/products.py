"""Splitting the gradient of a layer into products that need not wait for each other.

    fc_grad: e = d · activation'(out), db = Σ e, dw = xᵀ e, dx = e wᵀ
    →  fc_grad_rows (e, db) · fc_grad_x (dx) · fc_grad_w (dw)

The backward of the layers before needs only dx; any idle thread may compute dw until the parameter
is updated. Bit-identical: the operands of each product do not change.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator

from psrt.graph.program import Op, Program, Var, gradient_name

LATE = ("fc_grad_w",)
"""Ops that only the update waits for."""


def split_products(program: Program, keep: Collection[str] = ()) -> Program:
    """Split every `fc_grad` that makes a gradient of inputs and of weights."""
    ops: list[Op] = []
    vars = dict(program.vars)
    for op in program.ops:
        if op.type != "fc_grad" or not (any(op.outputs["x@GRAD"]) and any(op.outputs["w@GRAD"])):
            ops.append(op)
            continue
        rows = _rows(vars, op)
        vars.setdefault(rows.name, rows)
        ops.extend(_parts(op, rows.name))
    return dataclasses.replace(program, vars=vars, ops=ops)


def _rows(vars: dict[str, Var], op: Op) -> Var:
    """Gradient before the activation; without one it is that of the output."""
    given = vars[op.inputs["out@GRAD"][0]]
    if not op.attrs["activation"]:
        return given
    return dataclasses.replace(given, name=f"{gradient_name(op.inputs['out'][0])}@ROWS")


def _parts(op: Op, rows: str) -> Iterator[Op]:
    made: dict[str, tuple[str, ...]] = {}
    if op.attrs["activation"]:
        made["rows@GRAD"] = (rows,)
    if any(op.outputs.get("bias@GRAD", ())):
        made["bias@GRAD"] = op.outputs["bias@GRAD"]
    if made:
        read = {slot: op.inputs[slot] for slot in ("out", "out@GRAD")}
        yield dataclasses.replace(op, type="fc_grad_rows", inputs=read, outputs=made)
    pairs = list(zip(op.inputs["x"], op.inputs["w"], strict=True))
    for (x, w), x_grad in zip(pairs, op.outputs["x@GRAD"], strict=True):
        if x_grad:
            read = {"x": (x,), "w": (w,), "rows@GRAD": (rows,)}
            yield dataclasses.replace(
                op, type="fc_grad_x", inputs=read, outputs={"x@GRAD": (x_grad,)}, attrs={}
            )
    for (x, _), w_grad in zip(pairs, op.outputs["w@GRAD"], strict=True):
        if w_grad:
            read = {"x": (x,), "rows@GRAD": (rows,)}
            yield dataclasses.replace(
                op, type="fc_grad_w", inputs=read, outputs={"w@GRAD": (w_grad,)}, attrs={}
            )
