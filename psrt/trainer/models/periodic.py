"""Models saved at intervals while training goes on: when, under which names, and which are kept.

`DIR-step-1200` is the model of `--save DIR` after 1,200 steps of trainer 0. Each is a whole saved
model: it gets its name once it is complete.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from psrt.core.errors import ConfigError
from psrt.trainer.models.model_dir import MANIFEST
from psrt.trainer.models.replacement import discard

log = logging.getLogger("psrt.trainer")


@dataclass(frozen=True)
class Intervals:
    """Saves every so many steps, and at the end of every so many epochs; 0 = none."""

    steps: int = 0
    epochs: int = 0

    def is_due(self, epoch: int, following: int | None, step: int) -> bool:
        """Return True after step number `step`, of `epoch`, before one of epoch `following`."""
        ends_epoch = following != epoch
        return _divides(self.steps, step) or (ends_epoch and _divides(self.epochs, epoch))


def _divides(every: int, number: int) -> bool:
    return every > 0 and number % every == 0


class PeriodicSaves:
    """The models at intervals of one training; `place` is the directory of its last one.

    `save` writes one, in `pause`; `saved` gets its name. The newest `keep` stay, 0 = all.
    """

    def __init__(
        self,
        place: Path,
        intervals: Intervals,
        keep: int,
        save: Callable[[Path], None],
        pause: Callable[[], AbstractContextManager[None]],
        saved: Callable[[str], None],
    ) -> None:
        self._place, self._intervals, self._keep = place, intervals, keep
        self._save, self._pause, self._saved = save, pause, saved
        self._models: list[Path] = []

    def go_on(self, step: int) -> None:
        """Count those that an earlier process has saved up to `step`; later ones stay."""
        self._models = [path for number, path in saved_models(self._place) if number <= step]

    def after(self, epoch: int, following: int | None, step: int) -> None:
        """Save if that is due. A disk that is full costs no training: it is logged."""
        if not self._intervals.is_due(epoch, following, step):
            return
        directory = self._place.with_name(f"{self._place.name}-step-{step}")
        try:
            with self._pause():
                self._save(directory)
        except ConfigError as error:
            log.warning("%s Training goes on. %s", error.message, error.hint)
            return
        self._saved(str(directory))
        self._models = [path for path in self._models if path != directory] + [directory]
        self._drop_older()

    def _drop_older(self) -> None:
        while 0 < self._keep < len(self._models):
            older = self._models.pop(0)
            try:
                discard(older)
            except OSError as error:
                log.warning("%s, an older model, cannot be removed: %s", older, error.strerror)


def saved_models(place: Path) -> list[tuple[int, Path]]:
    """The models saved at intervals beside `place`, each behind its step, in order."""
    pattern = re.compile(re.escape(place.name) + r"-step-(\d+)")
    named = ((pattern.fullmatch(path.name), path) for path in place.parent.glob("*"))
    found = ((int(match[1]), path) for match, path in named if match is not None)
    return sorted((step, path) for step, path in found if (path / MANIFEST).is_file())
