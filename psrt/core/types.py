"""Array aliases used in annotations everywhere; shapes live in docstrings."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
F32: TypeAlias = npt.NDArray[np.float32]
F64: TypeAlias = npt.NDArray[np.float64]
I64: TypeAlias = npt.NDArray[np.int64]
I32: TypeAlias = npt.NDArray[np.int32]
U32: TypeAlias = npt.NDArray[np.uint32]
U64: TypeAlias = npt.NDArray[np.uint64]
I8: TypeAlias = npt.NDArray[np.int8]
U16: TypeAlias = npt.NDArray[np.uint16]
U8: TypeAlias = npt.NDArray[np.uint8]
Shape: TypeAlias = tuple[int, ...]
