"""Feeds and fetched values in the forms of Fluid."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from psrt.core.errors import DataError, ErrorCode
from psrt.core.tensors import Ragged
from psrt.core.types import Array
from psrt.data.slots import batch_rows
from psrt.executor.program import has_rows
from psrt.fluid.names import Variable, shown_shape
from psrt.fluid.running.lod_tensor import LoDTensor, nested_feed
from psrt.graph.derived import is_lengths_name, lengths_name
from psrt.graph.ops import ROWS
from psrt.graph.program import Program, Var

Feed: TypeAlias = Mapping[str, Any]
Batch: TypeAlias = dict[str, Array | Ragged]
Fetch: TypeAlias = str | Variable | Var
OnStep: TypeAlias = Callable[[list[Any]], None]
"""Consumer of the fetched values of each step."""

log = logging.getLogger("psrt.fluid")


class FluidArray(np.ndarray[Any, Any]):
    """A fetched array of one element, which converts by `float()`, `int()` and `%f` as in Fluid.

    numpy from 2.4 on refuses that for arrays with dimensions. Pickled, it is a plain array.
    """

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec and self.size == 1 else str(self)

    def __reduce__(self) -> Any:
        return np.asarray(self).__reduce__()

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar or array.size != 1 else array.view(FluidArray)


class FeedError(DataError, ValueError):
    """A value that was fed has not the shape or type of its var."""


def feed_of(
    given: Feed | Sequence[Feed] | None, program: Program | None = None, replicas: int = 1
) -> Batch:
    """Return one batch of arrays; parts in a list, one per replica in Fluid, are joined.

    With `program`, values take the form of its data vars; values of other names are left out, with
    a warning, and data vars that no op reads need no value. Raises `FeedError`, which names the
    shape that each of `replicas` would get.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        return _all_joined([feed_of(part, program) for part in given], _whole(program))
    if program is None:
        return {name: _plain(value) for name, value in given.items()}
    return _fitting(given, program, replicas)


def names_of(
    fetches: Sequence[Fetch] | Fetch | None, current: Callable[[str], str] = str
) -> list[str]:
    """Return the names in a fetch list, or of one var; `current` finds the var of a tensor."""
    if fetches is None:
        return []
    listed = [fetches] if isinstance(fetches, str | Variable | Var) else fetches
    return [current(fetch if isinstance(fetch, str) else fetch.name) for fetch in listed]


def returned(values: Iterable[Any]) -> list[Any]:
    """Return fetched values in Fluid's shapes: scalars have one element, in lists, too."""
    return [_returned(value) for value in values]


def tensors_of(batch: Batch) -> dict[str, LoDTensor]:
    """Return a batch as users of readers see it."""
    return {name: LoDTensor.of(value) for name, value in batch.items()}


def _fitting(given: Feed, program: Program, replicas: int) -> Batch:
    fed: Batch = {}
    for name, value in given.items():
        var = program.vars.get(name)
        if var is None or var.kind != "data":
            log.warning("The feed of %s was left out: the program does not read it.", name)
        else:
            fed[name] = _fed(value, var)
            _check(fed[name], var, replicas)
            if lengths_name(name) in program.vars.keys() - given.keys():
                fed |= nested_feed(name, value, fed[name])
    return fed | _unread(program, fed)


def _check(fed: Array | Ragged, var: Var, replicas: int) -> None:
    """Raise `FeedError`, in Fluid's words, for a shape or a type that does not fit."""
    array = fed.values if isinstance(fed, Ragged) else fed
    shape = shown_shape(var.shape)
    pairs = zip(array.shape[1:], shape[1:], strict=False)
    if array.ndim != len(var.shape) or any(a != b != ROWS for a, b in pairs):
        seen = [array.shape[0] // max(1, replicas), *array.shape[1:]] if array.ndim else []
        raise FeedError(
            f"The feeded Variable {var.name!r} should have dimensions = {len(shape)}, shape = "
            f"{shape}, but received feeded shape {seen} on each device",
            code=ErrorCode.SHAPE_MISMATCH,
        )
    if array.dtype.kind not in ("f" if var.type.is_float else "iu"):
        raise FeedError(
            f"The data type of feeded Variable {var.name!r} must be {var.dtype!r}, but received "
            f"{str(array.dtype)!r}"
        )


def _unread(program: Program, fed: Batch) -> Batch:
    """Zeros for the data vars that were not fed and that no op reads."""
    missing = [var for var in program.data_vars() if var.name not in fed]
    read = _read(program) if missing else set()
    whole = _whole(program) if missing else set()
    examples = {name: value for name, value in fed.items() if name not in whole}
    rows = batch_rows(examples) if examples else 0
    shapes = {var: (rows, *var.shape[1:]) for var in missing if var.name not in read | whole}
    # a list of one element each, as its length is
    fill = {var: np.ones if is_lengths_name(var.name) else np.zeros for var in shapes}
    return {var.name: _fed(fill[var](shape, var.dtype), var) for var, shape in shapes.items()}


def _read(program: Program) -> set[str]:
    """Vars that ops read; the inner lists of a data var are made of it, used or not."""
    used = {name for op in program.ops if op.type != "sequence_nest" for name in op.reads()}
    nests = [op for op in program.ops if op.type == "sequence_nest"]
    return used | {name for op in nests if not used.isdisjoint(op.writes()) for name in op.reads()}


def _fed(value: Any, var: Var) -> Array | Ragged:
    """The value for `var`: sequences for a ragged one, else an array of as many dimensions."""
    if var.ragged:
        value = value if isinstance(value, Ragged) else LoDTensor.of(value).ragged()
        inner = var.shape[1:]
        fits = value.values.shape[1:] == inner
        return value if fits else Ragged(_reshaped(value.values, var), value.offsets)
    if isinstance(value, int | float):
        value = np.array(value, var.dtype)  # a number has no type of its own
    array = np.asarray(value.values if isinstance(value, Ragged) else value)
    return array if array.ndim == len(var.shape) else _reshaped(array, var)


def _reshaped(array: Array, var: Var) -> Array:
    """`array` in the dimensions of `var`, where one side has but a last dimension of 1 more."""
    column = array.shape[-1:] == (1,) and array.ndim == len(var.shape) + 1
    if column:
        return array.reshape(array.shape[:-1])
    if var.shape[-1:] == (1,) and array.ndim == len(var.shape) - 1:
        return array.reshape(*array.shape, 1)
    return array


def _whole(program: Program | None) -> set[str]:
    """Names of the data vars of a program that have no examples."""
    fed = program.data_vars() if program else ()
    return {var.name for var in fed if not has_rows(var)}


def _all_joined(parts: Sequence[Batch], whole: Container[str] = ()) -> Batch:
    if len(parts) == 1:
        return parts[0]
    if len({frozenset(part) for part in parts}) > 1:
        raise DataError("The parts of a feed do not feed the same vars.")
    first = parts[0] if parts else {}
    return {
        name: (_one_or_each if name in whole else _joined)([part[name] for part in parts])
        for name in first
    }


def _one_or_each(values: Sequence[Array | Ragged]) -> Array | Ragged:
    """The value of all parts, or those of the parts one after the other, for replicas to share."""
    arrays = [np.asarray(value) for value in values]
    is_one = all(np.array_equal(arrays[0], other) for other in arrays[1:])
    return values[0] if is_one else np.concatenate(arrays)


def shared_out(parts: Sequence[Batch], count: int) -> list[Batch]:
    """Return the examples of some batches in `count` near-equal shares; one example is in one."""
    joined = _all_joined(list(parts))
    rows = batch_rows(joined)
    bounds = np.linspace(0, rows, min(count, rows) + 1).astype(int).tolist()
    return [
        {name: _rows_of(value, *ends) for name, value in joined.items()}
        for ends in itertools.pairwise(bounds)
    ]


def _rows_of(value: Array | Ragged, first: int, end: int) -> Array | Ragged:
    """The examples `first` to `end` − 1."""
    if not isinstance(value, Ragged):
        return value[first:end]
    offsets = value.offsets[first : end + 1]
    return Ragged(value.values[offsets[0] : offsets[-1]], offsets - offsets[0])


def _plain(value: Any) -> Array | Ragged:
    if isinstance(value, LoDTensor) and value.lod():
        return value.ragged()
    return value if isinstance(value, Ragged) else np.asarray(value)


def _joined(parts: Sequence[Array | Ragged]) -> Array | Ragged:
    ragged = [part for part in parts if isinstance(part, Ragged)]
    if not ragged:
        return np.concatenate([np.asarray(part) for part in parts])
    lengths = np.concatenate([np.diff(part.offsets) for part in ragged])
    values = np.concatenate([part.values for part in ragged])
    return Ragged(values, np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]))


def _returned(value: Any) -> Any:
    if isinstance(value, list):
        return [_returned(part) for part in value]
    if isinstance(value, np.ndarray) and value.size == 1:
        return value.reshape(value.shape or (1,)).view(FluidArray)
    return value
