"""Records of a program file as plain Python: ops with slots and attributes, vars with types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import DecodeError

import psrt.fluid.formats.program_file_pb2 as pb
from psrt.core.errors import DataError
from psrt.fluid.formats.tensor_files import DTYPES, NUMBERS

LOD_TENSOR, FEED_LIST, FETCH_LIST = 7, 9, 10

_FIELDS = {
    pb.INT: "i",
    pb.FLOAT: "f",
    pb.STRING: "s",
    pb.INTS: "ints",
    pb.FLOATS: "floats",
    pb.STRINGS: "strings",
    pb.BOOLEAN: "b",
    pb.BOOLEANS: "bools",
    pb.LONG: "l",
    pb.LONGS: "longs",
    pb.FLOAT64: "float64",
}
"""The field of a value by its type."""


class Long(int):
    """A number that is an attribute of 64 bits."""


@dataclass(frozen=True)
class FileOp:
    """One op: names of vars by slot, and attributes."""

    type: str
    inputs: Mapping[str, Sequence[str]]
    outputs: Mapping[str, Sequence[str]]
    attrs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class FileVar:
    """One var; `kind` is LOD_TENSOR, or that of the lists of feeds and fetches."""

    name: str
    shape: tuple[int, ...] = ()
    dtype: str = "float32"
    lod_level: int = 0
    persistable: bool = False
    kind: int = LOD_TENSOR


def parse(data: bytes, name: str) -> tuple[list[FileVar], list[FileOp]]:
    """Return the vars and ops of a program file; raises `DataError` for another file.

    A program with blocks inside of it is refused, too.
    """
    try:
        program = pb.ProgramDesc.FromString(data)
    except DecodeError as error:
        raise DataError(f"{name} holds no program of Fluid.") from error
    if len(program.blocks) != 1:
        raise DataError(
            f"{name} holds a program of {len(program.blocks)} blocks; psrt reads those of one, "
            "without loops and branches."
        )
    (block,) = program.blocks
    return [_var(desc) for desc in block.vars], [_op(desc) for desc in block.ops]


def serialize(vars: Sequence[FileVar], ops: Sequence[FileOp]) -> bytes:
    """Return the program file of these vars and ops."""
    block = pb.BlockDesc(idx=0, parent_idx=-1)
    for var in vars:
        _add_var(block.vars.add(), var)
    for op in ops:
        _add_op(block.ops.add(), op)
    return pb.ProgramDesc(blocks=[block], version=pb.Version(version=0)).SerializeToString()


def _var(desc: Any) -> FileVar:
    tensor = desc.type.lod_tensor.tensor
    return FileVar(
        desc.name,
        tuple(tensor.dims),
        DTYPES.get(tensor.data_type, str(tensor.data_type)),
        desc.type.lod_tensor.lod_level,
        desc.persistable,
        desc.type.type,
    )


def _op(desc: Any) -> FileOp:
    attrs = {}
    for attr in desc.attrs:
        if attr.type in _FIELDS:
            value = getattr(attr, _FIELDS[attr.type])
            attrs[attr.name] = value if isinstance(value, bool | int | float | str) else [*value]
    inputs = {slot.parameter: [*slot.arguments] for slot in desc.inputs}
    outputs = {slot.parameter: [*slot.arguments] for slot in desc.outputs}
    return FileOp(desc.type, inputs, outputs, attrs)


def _add_var(desc: Any, var: FileVar) -> None:
    desc.name, desc.persistable, desc.type.type = var.name, var.persistable, var.kind
    if var.kind == LOD_TENSOR:
        desc.type.lod_tensor.tensor.data_type = NUMBERS[var.dtype]
        desc.type.lod_tensor.tensor.dims.extend(var.shape)
        desc.type.lod_tensor.lod_level = var.lod_level


def _add_op(desc: Any, op: FileOp) -> None:
    desc.type = op.type
    for side, slots in ((desc.inputs, op.inputs), (desc.outputs, op.outputs)):
        for slot, names in slots.items():
            side.add(parameter=slot, arguments=names)
    for name, value in op.attrs.items():
        attr = desc.attrs.add(name=name, type=_type_of(value))
        if isinstance(value, list):
            getattr(attr, _FIELDS[attr.type]).extend(value)
        else:
            setattr(attr, _FIELDS[attr.type], value)


def _type_of(value: Any) -> Any:
    if isinstance(value, list):
        return pb.FLOATS if value and isinstance(value[0], float) else pb.INTS
    for kind, type in ((bool, pb.BOOLEAN), (Long, pb.LONG), (int, pb.INT), (float, pb.FLOAT)):
        if isinstance(value, kind):
            return type
    return pb.STRING


__all__ = ["FEED_LIST", "FETCH_LIST", "FileOp", "FileVar", "Long", "parse", "serialize"]
