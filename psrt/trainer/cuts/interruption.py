"""The last words of a trainer that a signal ended: what was trained, what saved, what not."""

from __future__ import annotations

import signal

from psrt.config.sections import TrainerConfig
from psrt.trainer.inputs import state


class Interruption:
    """Facts about a trainer's saves when a signal ends it; `text` is its last line."""

    def __init__(self, settings: TrainerConfig) -> None:
        self._settings = settings
        self._model = ""
        self._cut, self._makes_cuts = 0, False

    def saved(self, model: str) -> None:
        """Record that the model is complete in this directory."""
        self._model = model

    def has_cut(self, number: int, makes_cuts: bool) -> None:
        """Record the cut at which the trainer leaves, 0 = none; a job may make none."""
        self._cut, self._makes_cuts = number, makes_cuts

    def text(self, number: int, reached: state.Reached) -> str:
        """Name the signal, the step, and what was saved and what was not."""
        name, where = signal.Signals(number).name, f"epoch {reached.epoch}"
        return (
            f"interrupted by {name} in {where} after {reached.steps:,} steps: this trainer has not "
            f"completed. {self._model_text()}. {self._parameters_text()}."
        )

    def _model_text(self) -> str:
        if self._model:
            return f"The model is complete in {self._model}; it was not tested"
        if self._settings.save and self._settings.trainer_id == 0:
            return f"No model was saved to {self._settings.save}"
        return "No model was saved"

    def _parameters_text(self) -> str:
        if self._cut:
            return (
                f"Cut {self._cut} has all parameters and positions: go on with --resume {self._cut}"
            )
        if self._makes_cuts:
            return "No cut was made at the end: --resume latest goes on at the one before"
        if self._settings.local and (kept := self._settings.state):
            return f"{kept} has all parameters and the position: go on with --resume {kept}"
        if self._settings.local:
            return "The parameters are lost"
        return "The parameters are lost when the pservers end"
