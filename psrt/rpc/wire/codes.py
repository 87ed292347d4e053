"""Numbers of the protocol: kinds of parts, and dtypes of tensors.

protos/psrt/v1/frame.proto defines them and states the tensors that each kind of part carries.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psrt.core.precision import PRECISIONS
from psrt.rpc import pb

PUSH_DENSE: int = pb.PART_PUSH_DENSE
PUSH_ROWS: int = pb.PART_PUSH_ROWS
PULL_DENSE: int = pb.PART_PULL_DENSE
PULL_ROWS: int = pb.PART_PULL_ROWS
PULL_CHANGED: int = pb.PART_PULL_CHANGED

DTYPE_OF_CODE: dict[int, np.dtype[Any]] = {
    pb.DTYPE_FLOAT32: np.dtype("<f4"),
    pb.DTYPE_INT64: np.dtype("<i8"),
    pb.DTYPE_FLOAT64: np.dtype("<f8"),
    pb.DTYPE_INT32: np.dtype("<i4"),
    pb.DTYPE_UINT8: np.dtype("u1"),
    pb.DTYPE_FLOAT16: np.dtype("<f2"),
    pb.DTYPE_BFLOAT16: np.dtype("<u2"),
    pb.DTYPE_INT8: np.dtype("i1"),
}
"""Little-endian; another byte order is another dtype, and not found. numpy has no bfloat16: such a
tensor is an array of uint16."""

CODE_OF_DTYPE: dict[np.dtype[Any], int] = {dtype: code for code, dtype in DTYPE_OF_CODE.items()}

PRECISION_CODES: dict[str, int] = {
    name: pb.DType.Value(f"DTYPE_{name.upper()}") for name in PRECISIONS
}
"""`DType` by the name of a precision."""
