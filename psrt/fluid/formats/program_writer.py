"""Files of programs that predict, as PaddlePaddle reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from psrt.core.types import Shape
from psrt.fluid.formats.op_writers import WRITERS, NotWritten
from psrt.fluid.formats.records import FEED_LIST, FETCH_LIST, FileOp, FileVar, serialize
from psrt.graph.program import Program, Var


def write_program(program: Program, feeds: Sequence[str], fetches: Sequence[str]) -> bytes | None:
    """Return the file of a program that predicts; None if Fluid lacks one of its ops."""
    writing = _Writing(program)
    for column, name in enumerate(feeds):
        writing.op("feed", {"X": ["feed"]}, {"Out": [name]}, col=column)
    for op in program.ops:
        if op.type not in WRITERS:
            return None
        try:
            WRITERS[op.type](op, writing)
        except NotWritten:
            return None
    for column, name in enumerate(fetches):
        writing.op("fetch", {"X": [name]}, {"Out": ["fetch"]}, col=column)
    lists = [FileVar("feed", persistable=True, kind=FEED_LIST)]
    lists.append(FileVar("fetch", persistable=True, kind=FETCH_LIST))
    return serialize([*lists, *writing.vars.values()], writing.ops)


class _Writing:
    """Ops and vars of the file so far."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.vars = {name: _declared(var) for name, var in program.vars.items()}
        self.ops: list[FileOp] = []

    def var(self, name: str) -> Var:
        return self._program.vars[name]

    def shape(self, name: str) -> Shape:
        return self._program.vars[name].shape

    def temp(self, shape: Shape, dtype: str = "float32", ragged: bool = False) -> str:
        """Return the name of a new var."""
        name = f"psrt.tmp_{len(self.vars)}"
        self.vars[name] = _declared(Var(name, shape, dtype, ragged=ragged))
        return name

    def op(
        self,
        type: str,
        inputs: Mapping[str, Sequence[str]],
        outputs: Mapping[str, Sequence[str]],
        **attrs: Any,
    ) -> None:
        """Append an op; tuples among the attributes become lists."""
        plain = {k: list(v) if isinstance(v, tuple) else v for k, v in attrs.items()}
        self.ops.append(FileOp(type, inputs, outputs, plain))


def _declared(var: Var) -> FileVar:
    """The var of a file: scalars have one element, lists of numbers a column."""
    shape = tuple(-1 if size < 0 else size for size in var.shape) or (1,)
    if var.ragged and len(shape) == 1:
        shape = (-1, 1)
    return FileVar(var.name, shape, var.dtype, int(var.ragged), var.kind in ("parameter", "state"))


__all__ = ["write_program"]
