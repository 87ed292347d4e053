"""Var → array on a trainer: parameters, and the state of metrics.

A scope belongs to the thread that runs the executor; executors over one scope share parameters.
Arrays are returned without a copy: writing into one overwrites a parameter. Replacing an array is
allowed between two runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from psrt.core.errors import ErrorCode, ProgramError
from psrt.core.types import I64, Array, Shape
from psrt.graph.program import Parameter, Program
from psrt.kernels.tables import fill_block, fill_rows


class Scope:
    """Arrays by var name, without distributed tables: no trainer holds them.

    `before_read`, while set, is called before an array is returned: a trainer may have to finish an
    exchange with its pservers first.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, Array] = {}
        self.before_read: Callable[[], None] | None = None

    def __getitem__(self, name: str) -> Array:
        if self.before_read is not None:
            self.before_read()
        array = self._arrays.get(name)
        if array is None:
            raise ProgramError(
                f"The scope holds no array for {name}.",
                hint="Call Scope.init_parameters, or put the array there.",
            )
        return array

    def __setitem__(self, name: str, array: Array) -> None:
        if not isinstance(array, np.ndarray):
            raise ProgramError(
                f"{name} was given a {type(array).__name__}, so the scope did not take it.",
                hint="Put a numpy array there.",
            )
        self._arrays[name] = array if array.flags.c_contiguous else np.ascontiguousarray(array)

    def __contains__(self, name: object) -> bool:
        return name in self._arrays

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def init_parameters(self, program: Program, dtype: str = "float32") -> None:
        """Give every parameter the initial values of a pserver table with its spec.

        `dtype` "float64" widens these values, for gradient checks. State vars become zero.
        """
        for parameter in program.parameters.values():
            if not parameter.distributed:
                self._arrays[parameter.name] = initial_values(parameter).astype(dtype, copy=False)
        self.reset_state(program)

    def reset_state(self, program: Program) -> None:
        """Set state vars to their initial values, those of metrics to zero."""
        for var in program.vars.values():
            if var.kind == "state":
                self._arrays[var.name] = np.full(var.shape, var.initial, var.dtype)


def initial_values(parameter: Parameter) -> Array:
    """Initial values of a whole parameter; of a sparse one row by row, as in its pserver table."""
    values = np.empty(parameter.shape, np.float32)
    if parameter.sparse:
        ids: I64 = np.arange(parameter.shape[0], dtype=np.int64)
        fill_rows(parameter.initializer, parameter.seed, ids, values)
    else:
        fill_block(parameter.initializer, parameter.seed, 0, values.reshape(-1))
    if parameter.padding_id is not None and 0 <= parameter.padding_id < len(values):
        values[parameter.padding_id] = 0
    return values


# --- checks of an array ---------------------------------------------------------------------------


def check_shape(name: str, array: Array, shape: Shape) -> None:
    """Raise `ProgramError` unless an array of the scope has the shape of its var."""
    if array.shape != shape:
        raise ProgramError(
            f"{name} is declared with shape {shape}, but its array in the scope has shape "
            f"{array.shape}, so nothing was run.",
            code=ErrorCode.SHAPE_MISMATCH,
            hint="Put an array of the declared shape there.",
        )


def check_dtype(name: str, array: Array, dtypes: Sequence[Any]) -> None:
    """Raise `ProgramError` unless an array of the scope is of one of the dtypes."""
    if not any(array.dtype == dtype for dtype in dtypes):
        raise ProgramError(
            f"{name} must be {dtypes[0]} for this executor, but its array in the scope is "
            f"{array.dtype}, so nothing was run.",
            hint=f'Put array.astype("{dtypes[0]}") there.',
        )


def check_writeable(name: str, array: Array) -> None:
    """Raise `ProgramError` unless a run may write into an array of the scope."""
    if not array.flags.writeable:
        raise ProgramError(
            f"A run changes {name}, but its array in the scope is read-only, so nothing was run.",
            hint="Put a copy there: array.copy().",
        )
