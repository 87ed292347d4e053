"""The setting `on_nan`: what follows a step whose loss or gradients are infinite or NaN.

stop      training ends with an error that names where that began; nothing of the step counts
skip      the step is left out, as if its examples were not in the data
continue  nothing is checked
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from psrt.core.errors import ErrorCode, ProgramError, PsrtError
from psrt.executor.program import NO_CHECKS, FiniteChecks

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
