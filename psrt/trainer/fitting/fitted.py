"""The result of `psrt.fit`: the losses of each epoch, and the trained model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from psrt.core.errors import ProgramError
from psrt.core.types import F32, I64, Array
from psrt.executor.memory import Scope
from psrt.executor.ports import ParamSource
from psrt.executor.program import Executor, Feed
from psrt.graph.model import Model
from psrt.graph.prune import prune
from psrt.trainer.measuring import EpochLosses
from psrt.trainer.models import RowPages, save_inference_model


class Fitted:
    """A trained model. `history` has an `EpochLosses` for each epoch, `scope` the dense parameters.

    `source` returns rows of tables, `pages` those that training has changed.
    """

    def __init__(
        self,
        model: Model,
        scope: Scope,
        history: list[EpochLosses],
        source: ParamSource,
        pages: Mapping[str, Callable[[], RowPages]],
    ) -> None:
        self.model, self.scope, self.history = model, scope, history
        self._source, self._pages = source, pages
        self._predictor: Executor | None = None

    def predict(self, feed: Feed) -> Array:
        """Return the prediction of the model for a batch, which needs no labels."""
        if self.model.prediction is None:
            raise ProgramError(
                "The model has no prediction.", hint="Give psrt.Model a prediction and a label."
            )
        name = self.model.prediction.name
        if self._predictor is None:
            program = prune(self.model.program.clone(for_test=True), (name,))
            self._predictor = Executor(program, self.scope, source=self._source)
        known = {var.name for var in self._predictor.program.data_vars()}
        fed = {each: array for each, array in feed.items() if each in known}
        found: Any = self._predictor.run(fed, [name], roles=("forward",))[0]
        return found  # type: ignore[no-any-return]

    def parameter(self, name: str) -> Array:
        """Return a whole dense parameter; raises `ProgramError` for a distributed table."""
        record = self.model.program.parameters.get(name)
        if record is not None and record.distributed:
            raise ProgramError(
                f"{name} is a distributed table, which has a row for any int64.",
                hint=f'Name the ids: pull_rows({{"{name}": ids}}).',
            )
        return self.scope[name]

    def pull_rows(self, wanted: Mapping[str, I64]) -> dict[str, F32]:
        """Return rows (n, width) of the distinct ids (n,) of each table."""
        return dict(self._source.pull_rows(wanted))

    def save(self, directory: str | Path) -> None:
        """Write the model for `psrt predict`, `psrt export` and `psrt.load_inference_model`."""
        prediction = self.model.prediction
        if prediction is None:
            raise ProgramError(
                "The model has no prediction to save.",
                hint="Give psrt.Model a prediction and a label.",
            )
        program = self.model.program
        feeds = [var.name for var in prune(program, (prediction.name,)).data_vars()]
        save_inference_model(directory, feeds, [prediction], program, self.scope, self._pages)
