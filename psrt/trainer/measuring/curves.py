"""Curves: the course of a training as records, for files and for TensorBoard.

A record has its `kind`, train or validation, `step`, `epoch`, `examples` and `seconds` since the
start, and the values of its kind; a value that is not known is left out.
"""

from __future__ import annotations

import csv
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TextIO, TypeAlias

from psrt.core.clock import Clock
from psrt.core.errors import ConfigError, DataError
from psrt.core.extras import required

log = logging.getLogger("psrt.trainer")

Record: TypeAlias = dict[str, Any]

TRAIN, VALIDATION = "train", "validation"
PLACES = ("kind", "step", "epoch", "examples", "seconds")
"""Members of a record that are no values."""

CSV = ".csv"
SUFFIX = ".curves.jsonl"
"""The end of the names of files that `psrt plot` looks for."""


class CurveSink(Protocol):
    """A place for records."""

    def write(self, record: Record) -> None: ...
    def close(self) -> None: ...


class CurveFile:
    """A file of JSON lines, which is appended to; each is there once it is written."""

    def __init__(self, path: str) -> None:
        self._file = _opened(path)

    def write(self, record: Record) -> None:
        self._file.write(json.dumps(record) + "\n")

    def close(self) -> None:
        self._file.close()


class CsvFile:
    """A CSV file, which is appended to; its columns are fixed, and an empty cell is unknown."""

    def __init__(self, path: str, values: Sequence[str]) -> None:
        self._file = _opened(path)
        columns = [*PLACES, *(name for name in values if name not in PLACES)]
        self._rows = csv.DictWriter(self._file, columns, extrasaction="ignore")
        if not self._file.tell():
            self._rows.writeheader()

    def write(self, record: Record) -> None:
        self._rows.writerow(record)

    def close(self) -> None:
        self._file.close()


def _opened(path: str) -> TextIO:
    try:
        return open(path, "a", encoding="utf-8", buffering=1, newline="")
    except OSError as error:
        raise ConfigError(
            f"curves cannot be written to {path}: {error.strerror}.",
            hint="Name a file in a directory that exists.",
        ) from error


class TensorBoard:
    """Event files in a directory; raises `ConfigError` without the package tensorboardX."""

    def __init__(self, directory: str) -> None:
        module = required("tensorboardX", "tensorboard", "tensorboard")
        self._writer = module.SummaryWriter(logdir=directory)

    def write(self, record: Record) -> None:
        for name, value in record.items():
            if name not in PLACES:
                self._writer.add_scalar(f"{record['kind']}/{name}", value, record["step"])
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


class Curves:
    """The records of one training, written to all `sinks`."""

    def __init__(self, sinks: Sequence[CurveSink], clock: Clock) -> None:
        self._sinks, self._clock = list(sinks), clock
        self._began_s = clock.now()

    def record(self, kind: str, numbers: Mapping[str, Any]) -> None:
        """Write the numbers of one moment; those that are None are left out.

        A sink that fails is logged, and gets no more: it costs no training.
        """
        if not self._sinks:
            return
        known = {name: value for name, value in numbers.items() if value is not None}
        seconds = round(self._clock.now() - self._began_s, 3)
        for sink in list(self._sinks):
            try:
                sink.write({"kind": kind, "seconds": seconds, **known})
            except OSError as error:
                self._sinks.remove(sink)
                log.warning("curves are written no more: %s", error)

    def close(self) -> None:
        for sink in self._sinks:
            try:
                sink.close()
            except OSError as error:
                log.warning("the end of the curves was not written: %s", error)


def sinks_of(path: str, tensorboard: str, metrics: Sequence[str] = ()) -> list[CurveSink]:
    """The sinks of settings; "" = none. `metrics` are names of the model's, for columns of CSV.

    Raises `ConfigError` for one that cannot be made.
    """
    values = ["examples_per_s", "loss", "auc", *metrics]
    sinks: list[CurveSink] = []
    if path:
        sinks.append(CsvFile(path, values) if path.endswith(CSV) else CurveFile(path))
    return [*sinks, *([TensorBoard(tensorboard)] if tensorboard else [])]


def read(path: Path) -> list[Record]:
    """The records of a file; raises `DataError` naming a line that is none."""
    return list(_rows(path) if path.suffix == CSV else _records(path))


def _rows(path: Path) -> Iterator[Record]:
    """The records of a CSV file; `train` and `validation` are the only texts."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for row in (rows := csv.DictReader(file)):
                try:
                    kind, step = row.pop("kind"), int(row["step"])
                    known = {name: float(cell) for name, cell in row.items() if cell}
                    yield {**known, "kind": kind, "step": step}
                except (ValueError, TypeError, KeyError) as error:
                    raise _no_record(path, rows.line_num) from error
    except OSError as error:
        raise _unreadable(path, error) from error


def _records(path: Path) -> Iterator[Record]:
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    record = json.loads(line)
                    yield {**record, "kind": record["kind"], "step": int(record["step"])}
                except (ValueError, TypeError, KeyError) as error:
                    raise _no_record(path, number) from error
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> DataError:
    return DataError(
        f"curves cannot be read from {path}: {error.strerror}.",
        hint="Name a file that a training wrote by --curves.",
    )


def _no_record(path: Path, line: int) -> DataError:
    return DataError(
        f"{path}, line {line}, is no record of a curve.",
        hint="Name a file that a training wrote by --curves; the last line of a killed one may be "
        "cut off.",
    )
