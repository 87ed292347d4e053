"""Vars of a trainer's scope that outlive a step, as the position in a cut has them."""

from __future__ import annotations

from collections.abc import Mapping

from psrt.core.errors import DataError
from psrt.core.types import Array
from psrt.executor.memory import Scope
from psrt.executor.parallel import changed_in_place
from psrt.graph.program import Program

_VAR = "var "


class ScopeValues:
    """The vars of a scope that forward ops of a program change."""

    def __init__(self, program: Program, scope: Scope) -> None:
        self._scope, self._names = scope, sorted(changed_in_place(program))

    def arrays(self) -> dict[str, Array]:
        """Copies of the vars, under names for `restore`."""
        return {_VAR + name: self._scope[name].copy() for name in self._names}

    def restore(self, kept: Mapping[str, Array]) -> None:
        """Write kept vars to the scope; raises `DataError` if one has another shape or dtype."""
        for name in self._names:
            values, now = kept.get(_VAR + name), self._scope[name]
            if values is None:
                continue
            if values.shape != now.shape or values.dtype != now.dtype:
                raise DataError(
                    f"{name} is {now.dtype.name} {now.shape}, but {values.dtype.name} "
                    f"{values.shape} in the cut. Nothing was trained.",
                    hint="Resume with the program of the job that wrote the cut.",
                )
            self._scope[name] = values
