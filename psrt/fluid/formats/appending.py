"""Ops that users append to a program by Fluid's types, slots and attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psrt.core.errors import ProgramError
from psrt.core.hints import did_you_mean
from psrt.fluid.adapting import assign_to
from psrt.fluid.formats.op_readers import READERS, ReadOp
from psrt.fluid.formats.records import FileOp
from psrt.fluid.framework import FluidProgram, program_guard
from psrt.fluid.names import Variable


class _OfProgram:
    """Vars of a program by name."""

    def __init__(self, program: FluidProgram) -> None:
        self._program = program

    def variable(self, name: str) -> Variable:
        return self._program.variable(name)

    def shape(self, name: str) -> tuple[int, ...]:
        return self.variable(name).shape


def append_op(
    program: FluidProgram,
    type: str,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    attrs: Mapping[str, Any],
) -> None:
    """Append an op; each of `outputs` has its value from here on.

    Slots hold vars, names or lists of them. Raises `ProgramError` for a type that psrt lacks.
    """
    if type not in READERS:
        raise ProgramError(
            f"append_op was given an op {type}, which psrt does not have.",
            hint=did_you_mean(type, READERS, "docs/reference/fluid.md lists those it has."),
        )
    named = {slot: [_name(var) for var in _listed(given)] for slot, given in inputs.items()}
    with program_guard(program):
        made = READERS[type](ReadOp(FileOp(type, named, {}, attrs), _OfProgram(program)))
        for slot, given in outputs.items():
            found = _listed(made.get(slot, []))
            for target, value in zip(_listed(given), found, strict=False):
                assign_to(program.variable(_name(target)), value)


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, list | tuple) else [given]


def _name(var: Any) -> str:
    return var if isinstance(var, str) else str(var.name)


__all__ = ["append_op"]
