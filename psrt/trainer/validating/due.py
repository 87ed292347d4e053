"""The steps after which a validation is due; pure."""

from __future__ import annotations


class DueSteps:
    """Counts the steps of one trainer; `every_steps` = 0 means after each epoch."""

    def __init__(self, every_steps: int = 0) -> None:
        self._every_steps, self._steps = every_steps, 0

    def begin_at(self, steps: int) -> None:
        """Count on from the steps of an earlier process."""
        self._steps = steps

    def is_due_at(self, begins_epoch: bool) -> bool:
        """Return True if a validation was due after the steps so far, before a next one."""
        return self._steps % self._every_steps == 0 if self._every_steps else begins_epoch

    def after(self, epoch: int, following: int | None) -> bool:
        """Return True after a step of `epoch`, before one of epoch `following`; None = the end.

        The last step of a training is always validated.
        """
        self._steps += 1
        if following is None:
            return True
        if self._every_steps:
            return self._steps % self._every_steps == 0
        return following != epoch
