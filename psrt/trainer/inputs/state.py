"""Progress of a trainer through its data, kept in a file, so that another process can continue.

The file is written at the end of every epoch and when the training ends, by a signal or by itself;
it is one JSON object, complete or unchanged. Parameters are not in it: they are on pservers, or in
a saved model.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from psrt.config.sections import JobConfig, TrainerConfig
from psrt.core.errors import ConfigError, DataError
from psrt.data.sources import BEGINNING, DataFile, Place, Position
from psrt.trainer import report
from psrt.trainer.inputs.prefetch import PreparedBatch

_VERSION = 2

COMPLETED = "completed"
"""The position in a cut of a trainer that had completed."""


@dataclass(frozen=True)
class Reached:
    """Progress: `steps` mini-batches, in epoch `epoch` from 1, with `place` to continue from."""

    epoch: int = 1
    steps: int = 0
    place: Place = BEGINNING


@dataclass(frozen=True)
class DataShare:
    """Owner of a state: a trainer of a job, its files as listed, and the seed of their order."""

    job: str
    trainer: int
    trainers: int
    files: tuple[str, ...]
    shuffle_seed: int = -1


AT_THE_START = Reached()


class Recorder:
    """Records the progress of a training and writes it to `path`, unless that is empty."""

    def __init__(self, path: str, share: DataShare, start: Reached) -> None:
        self._path, self._share, self.reached = path, share, start

    def trained(self, batch: PreparedBatch, following: PreparedBatch | None) -> None:
        """Record the step on `batch`; `following` is the batch after it, None at the end."""
        self.reached = self._after(batch, following)
        if self.reached.epoch != batch.epoch:
            self.write()

    def position_after(
        self, batch: PreparedBatch, following: PreparedBatch | None
    ) -> Callable[[], str]:
        """A function that returns the state after the step on `batch`, for `go_on_at`."""
        reached = self._after(batch, following)
        return lambda: json.dumps(self._facts(reached))

    def go_on_at(self, position: str, epochs: int) -> None:
        """Begin at a position of an earlier run; behind all `epochs` if that had completed."""
        if position == COMPLETED:
            self.reached = Reached(epochs + 1)
        elif position:
            self.reached = _reached_of(json.loads(position), self._share, "the cut")

    def _after(self, batch: PreparedBatch, following: PreparedBatch | None) -> Reached:
        steps = self.reached.steps + 1
        if following is None or following.epoch != batch.epoch:
            return Reached(batch.epoch + 1, steps)
        return Reached(batch.epoch, steps, batch.place)

    def _facts(self, reached: Reached) -> dict[str, Any]:
        share = dataclasses.asdict(self._share)
        return {"psrt_state": _VERSION, **share, **dataclasses.asdict(reached)}

    def write(self) -> None:
        """Write the state, changed or not."""
        report.write(self._path, self._facts(self.reached), "--state")


def recorder(settings: TrainerConfig, job: JobConfig, files: Sequence[DataFile]) -> Recorder:
    """Return the recorder of a trainer with these files; it starts at the state of --resume."""
    trainer, trainers = settings.trainer_id, settings.trainers
    names = tuple(str(file) for file in files)
    share = DataShare(job.name, trainer, trainers, names, job.data.shuffle_seed)
    start = load(path_of(settings.resume, trainer, trainers), share)
    path = path_of(settings.state, trainer, trainers)
    report.check_target(path, "--state")
    return Recorder(path, share, start)


def path_of(path: str, trainer_id: int, trainers: int) -> str:
    """Return `run.json` for a single trainer, `run.trainer-1.json` for the second of several."""
    if not path or trainers == 1:
        return path
    whole = Path(path)
    return str(whole.with_name(f"{whole.stem}.trainer-{trainer_id}{whole.suffix}"))


def load(path: str, share: DataShare) -> Reached:
    """Read the state that `Recorder` wrote; the start of the data if `path` is empty.

    Raises `ConfigError` if it is the state of another share, `DataError` if it is no state.
    """
    if not path:
        return AT_THE_START
    return _reached_of(_read(path), share, f"--resume {path}")


def _reached_of(found: dict[str, Any], share: DataShare, source: str) -> Reached:
    for name, mine in dataclasses.asdict(share).items():
        theirs = found.get(name)
        if (tuple(theirs) if isinstance(theirs, list) else theirs) != mine:
            words = f"{name.replace('_', ' ')} {theirs!r}"
            what = "a list of files that differs" if name == "files" else words
            raise ConfigError(
                f"{source} is the state of {what} from this trainer's.",
                hint="Go on with the job, --trainers, --trainer-id, files and shuffle_seed it has.",
            )
    try:
        place = found["place"]
        positions = tuple(Position(**position) for position in place["positions"])
        return Reached(found["epoch"], found["steps"], Place(positions, place["next_file"]))
    except (KeyError, TypeError) as error:
        raise _no_state(source) from error


def _read(path: str) -> dict[str, Any]:
    try:
        found = json.loads(Path(path).read_text())
    except OSError as error:
        raise ConfigError(
            f"--resume {path} cannot be read: {error.strerror}.",
            hint="It is what --state wrote; with several trainers, name it as --state did.",
        ) from error
    except ValueError as error:
        raise _no_state(f"--resume {path}") from error
    if not isinstance(found, dict) or found.get("psrt_state") != _VERSION:
        raise _no_state(f"--resume {path}")
    return found


def _no_state(source: str) -> DataError:
    return DataError(
        f"{source} is not a state that this version of psrt wrote. Nothing was trained.",
        hint="It is what --state wrote.",
    )
