"""A table of the layers of a model: sizes, parameters, and operations for an example."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from psrt.core.types import Shape
from psrt.fluid.framework import FluidProgram
from psrt.graph.program import Op, Program

_ACTIVATIONS = ("leaky_relu", "relu", "sigmoid", "softmax", "tanh")
_TITLES = ("No.", "TYPE", "INPUT", "OUTPUT", "PARAMs", "FLOPs")


class _Row(NamedTuple):
    type: str
    input: Shape
    output: Shape
    params: int
    flops: int


def summary(main_prog: FluidProgram) -> None:
    """Print a row for each layer that multiplies, pools, normalises or activates, and the sums.

    Sizes are those of an example. A multiplication of `fc` counts one operation, one of `conv2d`
    two, as in Fluid.
    """
    rows = [row for op in main_prog.graph.ops for row in _rows(main_prog.graph, op)]
    lines = [[str(cell) for cell in (number, *row)] for number, row in enumerate(rows)]
    widths = [max(map(len, column)) for column in zip(_TITLES, *lines, strict=True)]
    for line in (_TITLES, *lines):
        print(" | ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
    params, flops = sum(row.params for row in rows), sum(row.flops for row in rows)
    print(f"Total PARAMs: {params}({params / 10**6:.4f}M)")
    print(f"Total FLOPs: {flops}({flops / 10**9:.2f}G)")


def _rows(graph: Program, op: Op) -> Iterator[_Row]:
    if op.role != "forward":
        return
    names = {slot: vars[0] for slot, vars in (op.inputs | op.outputs).items() if vars}
    shapes = {slot: graph.vars[name].shape for slot, name in names.items()}
    given = shapes.get("x", shapes.get("input", ()))[1:]
    made = shapes.get("out", ())[1:]
    if op.type == "fc":
        weights = [graph.vars[name].shape for name in op.inputs["w"]]
        count = sum(math.prod(shape) for shape in weights)
        yield _Row("fc", given, made, count + math.prod(shapes.get("bias", (0,))), count)
    elif op.type == "conv2d":
        filter = shapes["filter"]
        bias = filter[0] if "bias" in shapes else 0
        places = math.prod(made[1:])
        params = math.prod(filter) + bias
        yield _Row("conv2d", given, made, params, 2 * places * params)
    elif op.type == "pool2d":
        yield _Row("pool2d", given, made, 0, math.prod(given))
    elif op.type == "batch_norm":
        yield _Row("batch_norm", given, made, 2 * given[0], 2 * math.prod(given))
    elif op.type in _ACTIVATIONS:
        yield _Row(op.type, given, made, 0, math.prod(given))


__all__ = ["summary"]
