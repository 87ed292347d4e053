"""Programs of Fluid's files, to predict with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import psrt.fluid.layers as layers
from psrt.core.errors import DataError
from psrt.core.hints import did_you_mean
from psrt.fluid.adapting import input_data
from psrt.fluid.formats.op_readers import READERS, ReadOp
from psrt.fluid.formats.records import FileOp, FileVar, parse
from psrt.fluid.framework import FluidProgram, program_guard
from psrt.fluid.names import Variable, unique_name
from psrt.fluid.parameters import ParamAttr


@dataclass
class ReadProgram:
    """A program that was read: its feeds and fetches in the order of the file."""

    program: FluidProgram
    feeds: list[str] = field(default_factory=list)
    fetches: list[Variable] = field(default_factory=list)
    parameters: list[str] = field(default_factory=list)


def read_program(data: bytes, name: str) -> ReadProgram:
    """Return the program of a file's bytes; `name` is that of the file, for messages.

    Raises `DataError` for another file, and for an op that psrt does not read.
    """
    vars, ops = parse(data, name)
    made = ReadProgram(FluidProgram())
    with unique_name.guard(), program_guard(made.program, FluidProgram()):
        reading = _ReadVars(made, {var.name: var for var in vars}, name)
        for op in (*_in_columns(ops, "feed"), *_inner(ops), *_in_columns(ops, "fetch")):
            reading.read(op)
    made.parameters = sorted(var.name for var in vars if var.persistable and var.shape)
    return made


def _in_columns(ops: Sequence[FileOp], type: str) -> list[FileOp]:
    """Feeds or fetches in the order that users see: PaddlePaddle writes the last feed first."""
    return sorted((op for op in ops if op.type == type), key=lambda op: op.attrs.get("col", 0))


def _inner(ops: Sequence[FileOp]) -> list[FileOp]:
    return [op for op in ops if op.type not in ("feed", "fetch")]


class _ReadVars:
    """Variables by the file's names, made op by op."""

    def __init__(self, made: ReadProgram, declared: dict[str, FileVar], file: str) -> None:
        self._made, self._declared, self._file = made, declared, file
        self._variables: dict[str, Variable] = {}

    def shape(self, name: str) -> tuple[int, ...]:
        return self._declared[name].shape

    def variable(self, name: str) -> Variable:
        """Return the variable of a name; a parameter is declared when it is first read."""
        if name not in self._variables:
            declared = self._declared.get(name)
            if declared is None or not declared.persistable:
                raise DataError(f"{self._file} reads {name} before an op has computed it.")
            self._variables[name] = layers.create_parameter(
                list(declared.shape), declared.dtype, attr=ParamAttr(name=name)
            )
        return self._variables[name]

    def read(self, op: FileOp) -> None:
        if op.type == "feed":
            self._feed(self._declared[op.outputs["Out"][0]])
            return
        if op.type == "fetch":
            self._made.fetches.append(self.variable(op.inputs["X"][0]))
            return
        if op.type not in READERS:
            hint = did_you_mean(op.type, READERS, "docs/reference/fluid.md lists the ops it reads.")
            raise DataError(
                f"{self._file} has an op {op.type}, which psrt does not read.", hint=hint
            )
        for slot, found in READERS[op.type](ReadOp(op, self)).items():
            listed = [found] if isinstance(found, Variable) else found
            self._variables.update(zip(op.outputs.get(slot, ()), listed, strict=False))

    def _feed(self, var: FileVar) -> None:
        shape = [*var.shape]
        if var.lod_level:
            made = layers.data(var.name, shape[1:], dtype=var.dtype, lod_level=var.lod_level)
        else:
            made = input_data(var.name, shape, var.dtype)
        self._variables[var.name] = made
        self._made.feeds.append(var.name)


__all__ = ["ReadProgram", "read_program"]
