"""Files of saved vars in Fluid's format: one tensor after another, without their names.

    u32  version of the sequences, 0
    u64  number of levels; of each a u64 of bytes and so many u64 offsets
    u32  version of the tensor, 0
    i32  bytes of the description, and the description: a protobuf of data type and sizes
         the numbers, little endian, row by row

A file of one var is one tensor; a combined file has those of all vars in the order of their names.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator
from typing import BinaryIO

import numpy as np
from google.protobuf.message import DecodeError

import psrt.fluid.formats.program_file_pb2 as pb
from psrt.core.errors import DataError
from psrt.core.types import Array

DTYPES = {
    0: "bool",
    1: "int16",
    2: "int32",
    3: "int64",
    4: "float16",
    5: "float32",
    6: "float64",
    20: "uint8",
    21: "int8",
}
"""Numbers of data types in files."""

NUMBERS = {name: number for number, name in DTYPES.items()}

_LARGEST_DESCRIPTION = 1 << 16


def write_tensors(file: BinaryIO, arrays: Iterable[Array]) -> None:
    """Append each array, of one of DTYPES, as a tensor without sequences."""
    for array in arrays:
        desc = pb.VarType.TensorDesc(data_type=NUMBERS[array.dtype.name], dims=array.shape)
        text = desc.SerializeToString()
        file.write(struct.pack("<IQIi", 0, 0, 0, len(text)) + text)
        file.write(np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes())


def read_tensors(file: BinaryIO, name: str) -> Iterator[Array]:
    """Yield the tensors of a file until its end; raises `DataError` for another file."""
    while True:
        head = file.read(4)
        if not head:
            return
        yield _tensor(file, head, name)


def _tensor(file: BinaryIO, head: bytes, name: str) -> Array:
    _need(head == b"\0\0\0\0", name)
    (levels,) = struct.unpack("<Q", _read(file, 8, name))
    _need(levels <= 8, name)
    for _ in range(levels):
        (size,) = struct.unpack("<Q", _read(file, 8, name))
        _read(file, size, name)
    version, size = struct.unpack("<Ii", _read(file, 8, name))
    _need(version == 0 and 0 < size <= _LARGEST_DESCRIPTION, name)
    try:
        desc = pb.VarType.TensorDesc.FromString(_read(file, size, name))
    except DecodeError:
        desc = pb.VarType.TensorDesc(data_type=-1)
    _need(desc.data_type in DTYPES and all(size >= 0 for size in desc.dims), name)
    dtype = np.dtype(DTYPES[desc.data_type])
    bytes_ = _read(file, math.prod(desc.dims) * dtype.itemsize, name)
    return np.frombuffer(bytes_, dtype.newbyteorder("<")).reshape(tuple(desc.dims)).astype(dtype)


def _read(file: BinaryIO, size: int, name: str) -> bytes:
    found = file.read(size) if size < 1 << 40 else b""
    _need(len(found) == size, name)
    return found


def _need(fits: bool, name: str) -> None:
    if not fits:
        raise DataError(f"{name} is no file of saved vars, or it is cut off.")


__all__ = ["DTYPES", "NUMBERS", "read_tensors", "write_tensors"]
