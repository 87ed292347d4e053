"""Tensors of a call, in the order of its parts: each is checked when a part takes it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from psrt.core.errors import ErrorCode, TableError, WireError
from psrt.core.types import F32, Array, Shape
from psrt.kernels.precision import precision_of, scales_of, widened
from psrt.rpc import pb

ONE_RELEASE = "Install the same psrt release on trainers and pservers."


def numbers_of(part: pb.Part, tensors: Iterator[Array], what: str, shape: Shape) -> F32:
    """The next tensor, and its scales if it is int8, as float32 of `shape`."""
    values = next(tensors, None)
    if values is None:
        raise _missing(part, what)
    if values.dtype == np.float32 and values.shape == shape:
        return values
    if precision_of(values.dtype) is None:
        raise _misfit(part, what, f"dtype {values.dtype}", "dtype float32 or a narrower one")
    if values.shape != shape:
        raise _misfit(part, what, f"shape {values.shape}", f"shape {_text(shape)}")
    sent = [values]
    if values.dtype == np.int8:
        wanted = (scales_of(shape),)
        sent.append(tensor_of(part, tensors, f"scales of the {what}", np.float32, wanted))
    return widened(sent, part.factor or 1.0)


def tensor_of(
    part: pb.Part,
    tensors: Iterator[Array],
    what: str,
    dtype: type[np.generic],
    shape: tuple[int | None, ...],
) -> Array:
    """The next tensor, which must have `dtype` and `shape` (None = any extent)."""
    tensor = next(tensors, None)
    if tensor is None:
        raise _missing(part, what)
    if tensor.dtype != dtype:
        raise _misfit(part, what, f"dtype {tensor.dtype}", f"dtype {np.dtype(dtype)}")
    extents = zip(tensor.shape, shape, strict=False)
    if tensor.ndim != len(shape) or [t for t, n in extents if n not in (None, t)]:
        raise _misfit(part, what, f"shape {tensor.shape}", f"shape {_text(shape)}")
    return tensor


def _missing(part: pb.Part, what: str) -> WireError:
    return WireError(
        f"the {what} for table {part.table!r} are missing: too few tensors. The call was refused.",
        hint=ONE_RELEASE,
    )


def _text(shape: tuple[int | None, ...]) -> str:
    extents = ", ".join("n" if n is None else str(n) for n in shape)
    return f"({extents},)" if len(shape) == 1 else f"({extents})"


def _misfit(part: pb.Part, what: str, got: str, needed: str) -> TableError:
    return TableError(
        f"the {what} for table {part.table!r} came with {got}, but {needed} is needed; "
        "the call was refused.",
        code=ErrorCode.TABLE_SHAPE,
        hint="Trainer and pserver must use the same program and partition plan.",
    )
