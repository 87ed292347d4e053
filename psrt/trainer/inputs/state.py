"""Progress of a trainer through its data, kept in a file, so that another process can continue.

The file is written at the end of every epoch and when the training ends, by a signal or by itself;
it is one JSON object, complete or unchanged. Parameters are not in it: they are on pservers, or
without pservers in a file beside it that it names (`psrt.trainer.cuts.local_state`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Protocol

from psrt.config.sections import JobConfig, TrainerConfig
from psrt.core.errors import ConfigError, DataError
from psrt.data.sources import BEGINNING, DataFile, DealtFiles, Place, in_epoch
from psrt.trainer import report
from psrt.trainer.inputs.dealt import DealtEpoch, place_of
from psrt.trainer.inputs.kept_values import Kept, nothing_kept
from psrt.trainer.inputs.prefetch import PreparedBatch

_VERSION, _DEALT_VERSION = 2, 3
"""Versions of a state; one with epochs that were dealt again has the later."""


@dataclass(frozen=True)
class Reached:
    """Progress: `steps` mini-batches, in epoch `epoch` from 1, with `place` to continue from.

    `validated` is the course of an earlier process's validations, if there were some. `dealt` are
    the epochs from `epoch` on whose files were dealt again, in order.
    """

    epoch: int = 1
    steps: int = 0
    place: Place = BEGINNING
    dealt: tuple[DealtEpoch, ...] = ()
    validated: Mapping[str, Any] = field(default_factory=dict)

    @property
    def begins_epoch(self) -> bool:
        """True before the first batch of an epoch whose files were not dealt again."""
        return self.place == BEGINNING and all(each.epoch != self.epoch for each in self.dealt)

    def files_in(self, epoch: int, files: Sequence[DataFile], seed: int) -> DealtFiles:
        """Return the files to read in an epoch, in order, and the place to begin at.

        `files` and `seed` are those of the trainer's share.
        """
        for each in self.dealt:
            if each.epoch == epoch:
                return DealtFiles(each.files, self.place if epoch == self.epoch else each.place)
        first = self.place if epoch == self.epoch else BEGINNING
        return DealtFiles(tuple(in_epoch(files, seed, epoch)), first)

    def mark(self) -> str:
        """Epoch, steps, place and validations as short JSON, for the lineage of a trainer."""
        facts = [self.epoch, self.steps, asdict(self.place)]
        facts += [dict(self.validated)] if self.validated else []
        return json.dumps(facts, separators=(",", ":"))

    def at_mark(self, mark: str) -> Reached:
        """The progress at a mark of a former process, which began at this one."""
        epoch, steps, place, *validated = json.loads(mark)
        reached = self.at_start_of(epoch, steps)
        return replace(reached, place=place_of(place), validated=validated[0] if validated else {})

    def at_start_of(self, epoch: int, steps: int) -> Reached:
        """The progress before the first batch of a later epoch."""
        dealt = tuple(each for each in self.dealt if each.epoch >= epoch)
        place = next((each.place for each in dealt if each.epoch == epoch), BEGINNING)
        return Reached(epoch, steps, place, dealt, self.validated)


@dataclass(frozen=True)
class DataShare:
    """Owner of a state: a trainer of a job, its files as listed, and the seed of their order."""

    job: str
    trainer: int
    trainers: int
    files: tuple[str, ...]
    shuffle_seed: int = -1


AT_THE_START = Reached()


class Parameters(Protocol):
    """Parameters that are written beside a state, and what the state says of them."""

    def write(self, state: str, steps: int, former: Mapping[str, Any]) -> dict[str, Any]:
        """Write them beside the file `state`; returns what that has to say of them."""
        ...

    def remove(self, state: str, said: Mapping[str, Any]) -> None:
        """Remove those of a former state."""
        ...


class Recorder:
    """Records the progress of a training and writes it to `path`, unless that is empty.

    `parameters`, while set, are written with each state. `validated` returns the course of the
    validations up to a step, empty = it is that of the start.
    """

    def __init__(self, path: str, share: DataShare, start: Reached) -> None:
        self._path, self._share, self.reached = path, share, start
        self.parameters: Parameters | None = None
        self.validated: Callable[[int], Mapping[str, Any]] = lambda step: {}

    def trained(self, batch: PreparedBatch, following: PreparedBatch | None) -> None:
        """Record the step on `batch`; `following` is the batch after it, None at the end."""
        self.reached = self._after(batch, following)
        if self.reached.epoch != batch.epoch:
            self.write()

    def position_after(
        self, batch: PreparedBatch, following: PreparedBatch | None, kept: Kept = nothing_kept
    ) -> Callable[[], str]:
        """A function that returns the state after the step on `batch`, for cuts.

        `kept()` are the values that outlive the step, as JSON.
        """
        return self._position(self._after(batch, following), kept)

    def begin_at(self, reached: Reached, kept: Kept = nothing_kept) -> Callable[[], str]:
        """Begin at the progress of an earlier run; returns that state, for cuts."""
        self.reached = reached
        return self._position(reached, kept)

    def _position(self, reached: Reached, kept: Kept) -> Callable[[], str]:
        return lambda: json.dumps({**self._facts(reached), "kept": kept()})

    def mark_after(self, batch: PreparedBatch, following: PreparedBatch | None) -> str:
        """The mark behind the step on `batch`."""
        reached = self._after(batch, following)
        return replace(reached, validated=self._validated(reached)).mark()

    @property
    def share(self) -> DataShare:
        """The owner of the state."""
        return self._share

    def _after(self, batch: PreparedBatch, following: PreparedBatch | None) -> Reached:
        steps = self.reached.steps + 1
        if following is None or following.epoch != batch.epoch:
            return self.reached.at_start_of(batch.epoch + 1, steps)
        return replace(self.reached.at_start_of(batch.epoch, steps), place=batch.place)

    def _facts(self, reached: Reached) -> dict[str, Any]:
        share, version = asdict(self._share), _DEALT_VERSION if reached.dealt else _VERSION
        facts = {"epoch": reached.epoch, "steps": reached.steps, "place": asdict(reached.place)}
        dealt = {"dealt": [each.plain() for each in reached.dealt]} if reached.dealt else {}
        validated = dict(self._validated(reached))
        more = {"validated": validated} if validated else {}
        return {"psrt_state": version, **share, **facts, **dealt, **more}

    def _validated(self, reached: Reached) -> Mapping[str, Any]:
        return self.validated(reached.steps) or reached.validated

    def write(self) -> None:
        """Write the state, changed or not, behind the parameters that it names."""
        facts = self._facts(self.reached)
        if self.parameters is None or not self._path:
            report.write(self._path, facts, "--state")
            return
        former = parameters_in(self._path) if Path(self._path).exists() else {}
        said = self.parameters.write(self._path, self.reached.steps, former)
        report.write(self._path, {**facts, "parameters": said}, "--state")
        if former and former["file"] != said["file"]:
            self.parameters.remove(self._path, former)


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
    return reached_of(_read(path), share, f"--resume {path}")


def parameters_in(path: str) -> dict[str, Any]:
    """The entry about parameters in the state of the file `path`; empty = it has none."""
    with suppress(DataError):
        said = _read(path).get("parameters")
        return said if isinstance(said, dict) else {}
    return {}


def reached_of(found: dict[str, Any], share: DataShare, source: str) -> Reached:
    """Return the progress in a state `found` in `source`; raises as `load` does."""
    for name, mine in asdict(share).items():
        theirs = found.get(name)
        if (tuple(theirs) if isinstance(theirs, list) else theirs) != mine:
            raise ConfigError(
                f"{source} is of another share of the data: {_differing(name, theirs, mine)}. "
                "Nothing was trained.",
                hint="Go on with the job, --trainers, --trainer-id, files and shuffle_seed it has.",
            )
    try:
        dealt = tuple(map(DealtEpoch.of, found.get("dealt", ())))
        place, validated = place_of(found["place"]), dict(found.get("validated", {}))
        return Reached(found["epoch"], found["steps"], place, dealt, validated)
    except (AttributeError, KeyError, TypeError) as error:
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
    return checked(found, f"--resume {path}")


def checked(found: Any, source: str) -> dict[str, Any]:
    """Return a state; raises `DataError` if it is none of this version of psrt."""
    if not isinstance(found, dict) or found.get("psrt_state") not in (_VERSION, _DEALT_VERSION):
        raise _no_state(source)
    return found


def _differing(name: str, theirs: Any, mine: Any) -> str:
    """Name a setting and both values; of lists of files the first that differs."""
    if isinstance(theirs, list):
        pairs = zip_longest(theirs, mine, fillvalue="none")
        theirs, mine = next(pair for pair in pairs if pair[0] != pair[1])
        name = "the first file that differs"
    return f"{name.replace('_', ' ')} is {theirs!r} there and {mine!r} here"


def _no_state(source: str) -> DataError:
    return DataError(
        f"{source} is not a state that this version of psrt wrote. Nothing was trained.",
        hint="It is what --state wrote.",
    )
