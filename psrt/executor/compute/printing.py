"""Values on standard output while a program runs."""

from __future__ import annotations

import sys

import numpy as np

from psrt.core.types import Array
from psrt.executor.compute.registry import Bound, Step, computes
from psrt.executor.memory import Cell

_TYPES = {"float32": "float", "float64": "double", "int64": "long", "bool": "bool"}


class _Printer:
    """Prints the first values of a cell, as many times as the op has it, in PaddlePaddle's form."""

    def __init__(self, op: Bound, slot: str, phase: str) -> None:
        attrs = op.attrs
        self._title = (
            attrs["title"] or op.op.inputs["x"][0] if slot == "x" else op.op.inputs[slot][0]
        )
        self._message, self._parts = attrs["message"], attrs["parts"]
        self._count, self._left = attrs["summarize"], attrs["first_n"]
        self._is_on = attrs["phase"] in (phase, "both")

    def print(self, cell: Cell) -> None:
        if not self._is_on or self._left == 0:
            return
        self._left -= 1
        sys.stdout.write(self._text(cell.value, cell))

    def _text(self, value: Array, cell: Cell) -> str:
        offsets = [] if cell.offsets is None else [cell.offsets.tolist()]
        lods = "".join("{" + ", ".join(map(str, level)) + "}" for level in offsets)
        shown = {
            "name": f"Variable: {self._title}",
            "message": f"  - message: {self._message}",
            "lod": f"  - lod: {{{lods}}}",
            "place": "  - place: CPUPlace",
            "shape": f"  - shape: [{', '.join(map(str, value.shape or (1,)))}]",
            "layout": "  - layout: NCHW",
            "dtype": f"  - dtype: {_TYPES[value.dtype.name]}",
        }
        lines = [line for part, line in shown.items() if part in self._parts]
        flat = value.reshape(-1)
        first = flat if self._count < 0 else flat[: self._count]
        lines.append(f"  - data: [{' '.join(f'{number:g}' for number in first.tolist())}]")
        return "\n".join(lines) + "\n"


@computes("print_value")
def print_value(op: Bound) -> Step:
    x, out, printer = op.one("x"), op.one("out"), _Printer(op, "x", "forward")

    def run() -> None:
        np.copyto(out.reserve(x.value.shape), x.value)
        printer.print(x)

    return run


@computes("print_value_grad")
def print_value_grad(op: Bound) -> Step:
    grad, x_grad = op.one("out@GRAD"), op.one("x@GRAD")
    printer = _Printer(op, "out@GRAD", "backward")

    def run() -> None:
        x_grad.alias(grad.value)
        printer.print(grad)

    return run
