"""The setting `on_nan`: what follows a step whose loss or gradients are infinite or NaN.

stop      training ends with an error that names where that began; nothing of the step counts
skip      the step is left out, as if its examples were not in the data
continue  nothing is checked
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np

from psrt.core.errors import ErrorCode, ProgramError, PsrtError
from psrt.core.types import F32, I64, Array
from psrt.executor.program import NO_CHECKS, FiniteChecks

RowPages: TypeAlias = Iterable[tuple[I64, F32]]

_HINT = (
    'Lower the learning rate, clip gradients, or look at the data named above. on_nan = "skip" '
    "leaves such steps out. Cuts and models saved before this step have none of it."
)


class Numerics:
    """The policy of one training, whose loss is the var `loss`.

    `skipped` counts the steps that were left out; `say` prints the first of them.
    """

    def __init__(
        self, policy: str = "continue", loss: str = "", say: Callable[[str], None] = print
    ) -> None:
        self._policy, self._say = policy, say
        self.skipped = 0
        self.checks = NO_CHECKS
        if policy != "continue":
            self.checks = FiniteChecks((loss,), gradients=self.skips)

    @property
    def skips(self) -> bool:
        return self._policy == "skip"

    def guarded(self, step: Callable[[], list[Any]], explain: Callable[[], str]) -> list[Any]:
        """Run a step; returns [] if it is left out.

        Raises `ProgramError` NOT_FINITE with the sentence of `explain` if training stops.
        """
        try:
            return step()
        except PsrtError as error:
            if error.code is not ErrorCode.NOT_FINITE:
                raise
            if not self.skips:
                raise self._stopped(explain()) from error
            self._skip(error, explain)
            return []

    def _stopped(self, where: str) -> ProgramError:
        return ProgramError(
            f"The loss of a step is not finite. {where} Training ended before that step changed "
            "any parameter, and no model was saved.",
            code=ErrorCode.NOT_FINITE,
            hint=_HINT,
        )

    def _skip(self, error: PsrtError, explain: Callable[[], str]) -> None:
        self.skipped += 1
        if self.skipped == 1:
            self._say(f"warning: a step is left out: {error.message} {explain()}")


CONTINUE = Numerics()
"""No checks."""


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
