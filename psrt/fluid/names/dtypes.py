"""Types by Fluid's numbers, and names of dtypes in every form that it takes: "float32", numpy's,
`core.VarDesc.VarType`."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

from psrt.core.errors import ProgramError


class DtypeError(ProgramError, ValueError):
    """A dtype that vars cannot have."""


class VarType(IntEnum):
    """Types of vars and their elements, by Fluid's numbers; equal to the names of dtypes, too."""

    BOOL = 0
    INT16 = 1
    INT32 = 2
    INT64 = 3
    FP16 = 4
    FP32 = 5
    FP64 = 6
    LOD_TENSOR = 7
    SELECTED_ROWS = 8
    FEED_MINIBATCH = 9
    FETCH_LIST = 10
    STEP_SCOPES = 11
    LOD_RANK_TABLE = 12
    LOD_TENSOR_ARRAY = 13
    PLACE_LIST = 14
    READER = 15
    RAW = 17
    UINT8 = 20
    INT8 = 21

    def __eq__(self, other: object) -> bool:
        """Compare with a number, or with a name: `var.dtype == core.VarDesc.VarType.FP32`."""
        return _NUMBERS.get(other) is self if isinstance(other, str) else int(self) == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = int.__hash__


_NUMBERS = {
    "bool": VarType.BOOL,
    "int8": VarType.INT8,
    "uint8": VarType.UINT8,
    "int16": VarType.INT16,
    "int32": VarType.INT32,
    "int64": VarType.INT64,
    "float16": VarType.FP16,
    "float32": VarType.FP32,
    "float64": VarType.FP64,
}
_BY_NUMBER = {0: "bool", 2: "int32", 3: "int64", 5: "float32", 6: "float64", 20: "uint8"}
_AS = {"uint8": "int64", "int8": "int64", "int16": "int64", "int32": "int64", "int": "int64"}
_AS |= {"float": "float32", "double": "float64"}
_KNOWN = ("float32", "float64", "int64", "bool")


def dtype_name(dtype: Any) -> str:
    """Return psrt's name of a dtype; small integers are int64. Raises `ProgramError` for others."""
    name = _name_of(dtype)
    name = _AS.get(name, name)
    if name not in _KNOWN:
        raise DtypeError(f"dtype {dtype!r} was asked for; psrt has {', '.join(_KNOWN)}.")
    return name


def narrow_name(dtype: Any) -> str:
    """Return a dtype's own name; that of an integer may be narrower than psrt's."""
    name = _name_of(dtype)
    return name if name in _NUMBERS and name.endswith(("int8", "int16", "int32")) else ""


def dtype_number(dtype: Any) -> VarType:
    """Return Fluid's number of an array's dtype; raises `ProgramError` for others."""
    name = _name_of(dtype)
    if name not in _NUMBERS:
        raise ProgramError(f"dtype {name} has no number in Fluid, which has {', '.join(_NUMBERS)}.")
    return _NUMBERS[name]


def _name_of(dtype: Any) -> str:
    if isinstance(dtype, str):
        return dtype
    if isinstance(dtype, int):
        return _BY_NUMBER.get(int(dtype), repr(dtype))
    try:
        return str(np.dtype(dtype))
    except TypeError:
        return repr(dtype)


__all__ = ["VarType", "dtype_name", "dtype_number", "narrow_name"]
