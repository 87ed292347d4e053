"""Checks of values right after they are computed: a step ends at the first that is not finite.

The gradients of that step have not left then, and no parameter was updated, unless replicas compute
in parallel: of those, some gradients may have left.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from psrt.core.errors import ErrorCode, ProgramError
from psrt.core.tensors import Ragged
from psrt.executor.compute import in_sequence
from psrt.executor.memory import Cell
from psrt.executor.program.compiled import Compiled
from psrt.graph.program import Role

_COMPUTING: tuple[Role, ...] = ("forward", "backward", "clip_and_decay")


@dataclass(frozen=True)
class FiniteChecks:
    """The vars of a program that must be finite; with `gradients`, every final gradient, too."""

    vars: tuple[str, ...] = ()
    gradients: bool = False

    def names(self, compiled: Compiled) -> set[str]:
        """The names of all these vars in one program."""
        gradients = compiled.program.gradients().values() if self.gradients else ()
        return {*self.vars, *gradients} & compiled.cells.keys()


NO_CHECKS = FiniteChecks()


def add_checks(compiled: Compiled, checks: FiniteChecks) -> None:
    """Check each var behind the last op that writes it; the error names that op and its layer."""
    wanted = checks.names(compiled)
    for role in reversed(_COMPUTING):
        steps = compiled.steps[role]
        for at in reversed(range(len(steps))):
            op, step = steps[at]
            found = [name for name in op.writes() if name in wanted]
            wanted.difference_update(found)
            tests = [partial(_check, compiled.cells[name]) for name in found]
            if tests:
                steps[at] = op, in_sequence([step, *tests])


def _check(cell: Cell) -> None:
    value = cell.value
    values = np.asarray(value.values if isinstance(value, Ragged) else value)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        bad = values.reshape(-1)[~np.isfinite(values.reshape(-1))][0]
        raise ProgramError(f"{cell.name} is {bad}.", code=ErrorCode.NOT_FINITE)
