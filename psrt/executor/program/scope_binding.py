"""Arrays of the scope put into the cells of a program, each checked once.

Kernels trust shapes and dtypes: an array smaller than its declared var would be read and written
beyond its end. Users put any arrays into the scope, so each is checked at its first use, and again
before the first update that writes into it.
"""

from __future__ import annotations

from collections.abc import Sequence

from psrt.core.types import Array
from psrt.executor.memory import Cell, Scope, check_dtype, check_shape, check_writeable
from psrt.executor.program.compiled import Compiled
from psrt.graph.program import Role


class ScopeBinding:
    """The cells of a program whose arrays are in a scope; call `bind` before every step."""

    def __init__(self, compiled: Compiled) -> None:
        self._compiled, vars = compiled, compiled.program.vars
        self._cells = [(cell, vars[cell.name].shape) for cell in compiled.scope_cells()]
        forward = (op for op in compiled.program.ops if op.role == "forward")
        changing = (op for op in forward if not op.attrs.get("is_test"))
        self._changed_by_forward = {name for op in changing for name in op.writes()}
        self._not_updated: dict[str, Cell] = {}

    def bind(self, arrays: Scope, roles: Sequence[Role]) -> None:
        """Set the cells to the arrays of the scope; raises `ProgramError` for an unusable array."""
        for cell, shape in self._cells:
            array = arrays[cell.name]
            if array is cell.value:
                continue
            # In a cluster every step may bring a new array for every parameter.
            fits = array.shape == shape and array.dtype == cell.dtype
            if not fits or not array.flags.writeable:
                self._check(cell, array)
            cell.alias(array)
        if self._not_updated and "optimize" in roles:
            for cell in self._not_updated.values():
                self._check_dtype(cell, cell.value)
                check_writeable(cell.name, cell.value)
            self._not_updated.clear()

    def _check(self, cell: Cell, array: Array) -> None:
        """Check an array that does not match its cell; raises `ProgramError` for most.

        Rows of a sparse table may have any dtype except for updates, because they are copied.
        """
        program, name = self._compiled.program, cell.name
        check_shape(name, array, program.vars[name].shape)
        if name not in program.parameters or not program.parameters[name].sparse:
            self._check_dtype(cell, array)
        if name in self._changed_by_forward:
            check_writeable(name, array)
        if name in self._compiled.updates:
            self._not_updated[name] = cell

    def _check_dtype(self, cell: Cell, array: Array) -> None:
        """Check a dtype; an executor in double precision also accepts the declared one."""
        check_dtype(cell.name, array, (cell.dtype, self._compiled.program.vars[cell.name].dtype))
