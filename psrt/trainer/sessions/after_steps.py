"""The work of trainer 0 between steps: models at intervals, validations, callbacks."""

from __future__ import annotations

from psrt.trainer.inputs import state
from psrt.trainer.measuring import EpochLosses, Progress
from psrt.trainer.models import PeriodicSaves
from psrt.trainer.sessions.callbacks import EpochCallbacks
from psrt.trainer.validating import Point, Validator


class AfterSteps:
    """Work after each step of one training; None = there is none of a kind."""

    def __init__(
        self,
        saves: PeriodicSaves | None,
        validator: Validator | None,
        callbacks: EpochCallbacks,
        progress: Progress,
    ) -> None:
        self._saves, self._validator = saves, validator
        self._callbacks, self._progress = callbacks, progress

    @property
    def has_ended(self) -> bool:
        """True once a validation or a callback has ended the training of all."""
        is_over = self._validator is not None and self._validator.has_ended
        return is_over or self._callbacks.has_ended

    def go_on(self, reached: state.Reached) -> None:
        """Go on behind the steps of an earlier process."""
        if reached.steps and self._saves is not None:
            self._saves.go_on(reached.steps)
        if reached.steps and self._validator is not None:
            here = reached.epoch, reached.steps, reached.begins_epoch, reached.validated
            self._validator.go_on(Point(*here))

    def after(self, epoch: int, following: int | None, step: int) -> bool:
        """Do what is due after step number `step`, of `epoch`, before one of epoch `following`.

        Returns True if the state at the end of an epoch has got another validation.
        """
        tested = None
        if self._saves is not None:
            self._saves.after(epoch, following, step)
        if self._validator is not None:
            tested = self._validator.after(epoch, following, step)
        if following == epoch:
            return False
        self._callbacks.after(EpochLosses(epoch, self._progress.epoch_tally, tested))
        return tested is not None
