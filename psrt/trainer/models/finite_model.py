"""The check of parameters on their way into a saved model."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from psrt.core.errors import ErrorCode, ProgramError
from psrt.core.types import Array
from psrt.trainer.models.export import RowPages


class FiniteModel:
    """Parameters on their way into a saved model: none is saved that is not finite without a word.

    With policy "stop" such a number raises `ProgramError` NOT_FINITE, and nothing is saved.
    """

    def __init__(self, policy: str, say: Callable[[str], None]) -> None:
        self._policy, self._say = policy, say
        self._has_said = False

    def dense(self, arrays: Mapping[str, Array]) -> Mapping[str, Array]:
        """Dense parameters by name, checked."""
        for name, values in arrays.items():
            if not np.isfinite(values).all():
                self._found(f"parameter {name}")
        return arrays

    def pages(self, table: str, rows: Callable[[], RowPages]) -> RowPages:
        """Pages of ids (n,) and rows (n, width) of a table, checked one by one."""
        for ids, values in rows():
            bad = ~np.isfinite(values).all(axis=1)
            if bad.any():
                self._found(f"the row of id {ids[bad.argmax()]} of table {table}")
            yield ids, values

    def _found(self, where: str) -> None:
        what = f"{where} has numbers that are not finite"
        if self._policy == "stop":
            raise ProgramError(
                f"{what[0].upper()}{what[1:]}: no model was saved.",
                code=ErrorCode.NOT_FINITE,
                hint='on_nan = "continue" of [trainer] saves such a model.',
            )
        if not self._has_said:
            self._has_said = True
            self._say(f"warning: the model is not finite: {what}")
