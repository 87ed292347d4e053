"""Arrays of the scope in the cells of a program, each looked at once before ops trust it.

Kernels trust shapes and dtypes: an array that is smaller than its var says would be read, and
written, beyond its end. Users put arrays into the scope as they like, so each is checked when it
is first seen, and again before the first update that writes into it.
"""

from __future__ import annotations

from collections.abc import Sequence

from psrt.core.types import Array
from psrt.executor.memory import Cell, Scope, check_dtype, check_shape, check_writeable
from psrt.executor.program.compiled import Compiled
from psrt.graph.program import Role


class ScopeBinding:
    """The cells of a program whose arrays stand in a scope; `bind` comes before every step."""

    def __init__(self, compiled: Compiled) -> None:
        self._compiled, vars = compiled, compiled.program.vars
        self._cells = [(cell, vars[cell.name].shape) for cell in compiled.scope_cells()]
        forward = (op for op in compiled.program.ops if op.role == "forward")
        changing = (op for op in forward if not op.attrs.get("is_test"))
        self._changed_by_forward = {name for op in changing for name in op.writes()}
        self._not_updated: dict[str, Cell] = {}

    def bind(self, arrays: Scope, roles: Sequence[Role]) -> None:
        """Let the cells hold what stands in `arrays`; raises `ProgramError` for what cannot."""
        for cell, shape in self._cells:
            array = arrays[cell.name]
            if array is cell.value:
                continue
            # A trainer of a cluster puts a new array for every parameter in every step.
            fits = array.shape == shape and array.dtype == cell.dtype
            if not fits or not array.flags.writeable:
                self._check(cell, array)
            cell.share(array)
        if self._not_updated and "optimize" in roles:
            for cell in self._not_updated.values():
                self._check_dtype(cell, cell.value)
                check_writeable(cell.name, cell.value)
            self._not_updated.clear()

    def _check(self, cell: Cell, array: Array) -> None:
        """An array that does not fit as it is; most are refused.

        Rows of a sparse table are copied, from any dtype, for all but updates.
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
        """An executor in double precision takes what was declared, too."""
        check_dtype(cell.name, array, (cell.dtype, self._compiled.program.vars[cell.name].dtype))
