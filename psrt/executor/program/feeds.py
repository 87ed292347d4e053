"""Checks of a fed batch, and its arrays put into the cells of the data vars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from psrt.core.errors import DataError, ErrorCode
from psrt.core.hints import did_you_mean
from psrt.core.tensors import Ragged
from psrt.core.types import I64, Array, Shape
from psrt.executor.memory import Cell
from psrt.graph.ops import ANY, ROWS
from psrt.graph.program import Var

Feed: TypeAlias = Mapping[str, Array | Ragged]


class Intake:
    """Puts batches into the cells of `vars`, of one compiled program.

    Most batches match the declared vars and are contiguous, which one check per var confirms; only
    other arrays are converted, or refused. Offsets that several vars share are checked once.
    """

    def __init__(self, vars: Mapping[str, Var], cells: Mapping[str, Cell]) -> None:
        self._vars, self._cells = vars, cells
        self._plain = [
            (var, cells[name].dtype, var.shape[has_rows(var) :], has_rows(var))
            for name, var in vars.items()
            if ANY not in var.shape
        ]
        self._data = [name for name, var in vars.items() if var.kind == "data" and has_rows(var)]
        self._are_examples = all(
            var.kind == "data" and not var.ragged and has_rows(var) for var in vars.values()
        )

    def load(self, feed: Feed) -> Feed:
        """Set the cells, and return the batch as `checked` does."""
        fitting = self.checked(feed)
        self.put(fitting)
        return fitting

    def checked(self, feed: Feed) -> Feed:
        """The batch in the dtypes of cells, C-contiguous; raises `DataError` that names the var.

        All data vars must have the same number of examples; derived ids may have any.
        """
        return feed if self._matches(feed) else self._converted(feed)

    def put(self, fed: Feed) -> None:
        """Set the cells to a checked batch, or to a share of one."""
        for name, each in fed.items():
            cell = self._cells[name]
            if isinstance(each, Ragged):
                cell.alias(each.values)
                cell.follows = None
                cell.offsets = each.offsets
            else:
                cell.alias(each)

    def put_examples(self, fed: Feed, start: int, stop: int) -> bool:
        """Set the cells to examples of a checked batch of ordinary data vars; return False,
        without effect, for other batches."""
        if not self._are_examples:
            return False
        for name in self._data:
            self._cells[name].value = fed[name][start:stop]  # type: ignore[index]
        return True

    def _matches(self, feed: Feed) -> bool:
        """True if a batch needs no conversion; raises `DataError` for wrong offsets."""
        if len(self._plain) < len(self._vars) or feed.keys() != self._vars.keys():
            return False
        offsets = _SharedOffsets()
        for var, dtype, shape, first in self._plain:
            fed = feed[var.name]
            if var.ragged:
                if not isinstance(fed, Ragged) or not offsets.are_checked(fed, var):
                    return False
                fed = fed.values
            if not _is_plain(fed, dtype, shape, first):
                return False
        return len({_examples(feed[name]) for name in self._data}) <= 1

    def _converted(self, feed: Feed) -> Feed:
        check_names(feed, self._vars)
        sizes: dict[int, str] = {}
        fitting = {
            name: _checked_one(feed[name], var, self._cells[name])
            for name, var in self._vars.items()
        }
        for name in self._data:
            sizes.setdefault(_examples(fitting[name]), name)
        if len(sizes) > 1:
            (first, name), (second, other) = list(sizes.items())[:2]
            raise DataError(f"The batch feeds {first} examples as {name}, but {second} as {other}.")
        return fitting


class _SharedOffsets:
    """Checks of the offsets of a batch: an array that neighbouring vars share is read once."""

    def __init__(self) -> None:
        self._last: tuple[I64 | None, int] = (None, 0)

    def are_checked(self, fed: Ragged, var: Var) -> bool:
        """True if they are usable as they are; raises `DataError` if they are wrong."""
        last, count = self._last
        if fed.offsets is last and len(fed.values) == count:
            return True
        self._last = fed.offsets, len(fed.values)
        return _checked_offsets(fed.offsets, len(fed.values), var) is fed.offsets


def has_rows(var: Var) -> int:
    """Return 1 for a var of examples or elements, 0 for one value for the whole batch."""
    return int(var.shape[:1] == (ROWS,))


def check_is_batch(feed: object) -> None:
    """Raise `DataError` unless the feed is a mapping."""
    if not isinstance(feed, Mapping):
        raise DataError(
            f"A batch is fed as arrays by the names of data vars, not as {type(feed).__name__}.",
            hint='Feed a dict: {"x": array}. A batch for all replicas is one dict.',
        )


def check_names(feed: Feed, vars: Mapping[str, Var]) -> None:
    """Raise `DataError` unless a batch feeds `vars` and nothing else."""
    for name in feed:
        if name not in vars:
            raise DataError(
                f"The batch feeds {name}, which the program does not declare.",
                hint=did_you_mean(name, vars, "Declare it with layers.data."),
            )
    for name, var in vars.items():
        if name not in feed:
            raise DataError(f"The batch does not feed {name}, declared as {var.type}.")


def _checked_one(fed: Array | Ragged, var: Var, cell: Cell) -> Array | Ragged:
    if var.ragged != isinstance(fed, Ragged):
        kind = "a ragged" if var.ragged else "an ordinary"
        raise DataError(
            f"{var.name} is {kind} var of type {var.type}, but got {type(fed).__name__}."
        )
    values = np.asarray(fed.values if isinstance(fed, Ragged) else fed)
    if not _fits(values.shape, var.shape):
        raise DataError(
            f"{var.name} is declared with shape {var.shape}, but fed with shape {values.shape}.",
            code=ErrorCode.SHAPE_MISMATCH,
        )
    if values.dtype.kind not in ("f" if cell.dtype.kind == "f" else "iu"):
        raise DataError(f"{var.name} holds {var.dtype}, but is fed with {values.dtype}.")
    fitting = np.ascontiguousarray(values, cell.dtype)
    if not isinstance(fed, Ragged):
        return fitting
    offsets = _checked_offsets(fed.offsets, len(fitting), var)
    is_fed = fitting is fed.values and offsets is fed.offsets
    return fed if is_fed else Ragged(fitting, offsets)


def _examples(fed: Array | Ragged) -> int:
    return fed.batch_size if isinstance(fed, Ragged) else len(fed)


def _is_plain(values: object, dtype: np.dtype[Any], shape: Shape, first: int) -> bool:
    """Return whether `values` are an array of this dtype whose sizes behind the `first` fit."""
    return (
        type(values) is np.ndarray
        and values.dtype == dtype
        and values.ndim >= first
        and values.shape[first:] == shape
        and values.flags.c_contiguous
    )


def _fits(shape: Shape, declared: Shape) -> bool:
    """Return whether a batch of `shape` feeds a var, whose sizes may be open."""
    pairs = zip(shape, declared, strict=False)
    return len(shape) == len(declared) and all(a == b or b < 0 for a, b in pairs)


def _checked_offsets(fed: object, count: int, var: Var) -> I64:
    """The offsets as int64; kernels trust them, and a wrong one would read outside the values."""
    offsets = np.asarray(fed)
    if offsets.ndim != 1 or offsets.dtype.kind not in "iu":
        raise DataError(
            f"The offsets of {var.name} are {offsets.dtype} of shape {offsets.shape}, "
            "not one integer for the start of each example.",
            hint="Feed them as int64, one more than there are examples.",
        )
    is_run = len(offsets) > 0 and offsets[0] == 0 and offsets[-1] == count
    if not is_run or bool((offsets[1:] < offsets[:-1]).any()):
        raise DataError(
            f"The offsets of {var.name} do not rise from 0 to {count}, its number of elements.",
            hint="Offsets hold the start of each example, and end with the number of elements.",
        )
    return np.ascontiguousarray(offsets, np.int64)
