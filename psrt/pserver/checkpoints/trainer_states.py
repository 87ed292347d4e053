"""Trainer states in cuts: pages that Geo trainers send, each trainer's to an array file.

The first page opens the file, the last one makes it durable. A page that arrives twice is written
once. The part of the pserver waits for the states of its trainers; it fails as soon as one of them
cannot come any more.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from psrt.core.errors import ErrorCode, JobError
from psrt.core.types import Array
from psrt.pserver.checkpoints import cut_files
from psrt.storage.array_writer import ArrayFileWriter
from psrt.storage.directory import Directory
from psrt.storage.seals import Seal


@dataclass(frozen=True)
class SentPage:
    """A page of the state of one process of a trainer, for cut `cut`."""

    cut: int
    trainer: int
    incarnation: int
    number: int
    is_last: bool
    meta: Mapping[str, Any]
    arrays: Mapping[str, Array]


class _StateFile:
    """The file of one trainer; `seal` is that of the complete file. One thread at a time."""

    def __init__(self, directory: Directory, name: str, incarnation: int) -> None:
        self.name, self.incarnation, self.pages = name, incarnation, 0
        self.seal: Seal | None = None
        self.lock = threading.Lock()
        self._directory, self._open = directory, ExitStack()
        self._writer: ArrayFileWriter | None = None

    def write(self, page: SentPage) -> None:
        """Append a page; after an error the file is given up."""
        try:
            if self._writer is None:
                out = self._open.enter_context(self._directory.write(self.name))
                self._writer = ArrayFileWriter(out)
            self._writer.page(page.meta, page.arrays)
            self.pages += 1
            if page.is_last:
                seal = self._writer.finish()
                self._open.close()
                self.seal = seal
        except BaseException as error:
            self.give_up(error)
            raise

    def give_up(self, error: BaseException) -> None:
        """Leave no file, unless it is complete."""
        with ExitStack() as ignoring:
            ignoring.push(lambda *raised: True)
            self._open.__exit__(type(error), error, error.__traceback__)


@dataclass
class _Awaited:
    """The states of one cut that this pserver writes, by trainer; `problem` ends the wait."""

    cut: int
    files: dict[int, _StateFile]
    problem: str = ""

    @property
    def missing(self) -> list[int]:
        return [trainer for trainer, file in self.files.items() if file.seal is None]


@dataclass
class TrainerStates:
    """States that this pserver, number `index` of the plan, writes; one cut at a time.

    Handler threads call `put`; the thread that writes the part calls `collect`.
    """

    directory: Directory
    _awaited: _Awaited = field(default_factory=lambda: _Awaited(0, {}))
    _changed: threading.Condition = field(default_factory=lambda: threading.Condition())

    def expect(self, cut: int, index: int, trainers: Mapping[int, int]) -> None:
        """Wait for the states of these trainers, by number and incarnation of their processes."""
        files = {
            trainer: _StateFile(
                self.directory, cut_files.arrays_name(cut, index, f"trainer-{trainer}"), process
            )
            for trainer, process in trainers.items()
        }
        with self._changed:
            self._awaited = _Awaited(cut, files)

    def put(self, page: SentPage) -> None:
        """Write a page, or nothing if that was done; raises `JobError` if nothing awaits it."""
        with self._changed:
            awaited, file = self._awaited, self._awaited.files.get(page.trainer)
        if file is None or (awaited.cut, file.incarnation) != (page.cut, page.incarnation):
            raise _unawaited(page, "this pserver does not wait for the state")
        with file.lock:
            if page.number < file.pages:
                return
            if awaited.problem or page.number > file.pages:
                raise _unawaited(page, awaited.problem or f"page {file.pages} is missing")
            try:
                file.write(page)
            except BaseException as error:
                self._fail(awaited, f"the state of trainer {page.trainer}: {error}")
                raise
        with self._changed:
            self._changed.notify_all()

    def collect(self, timeout_s: float) -> list[dict[str, Any]]:
        """The files once all are durable: name, seal and trainer.

        Raises `JobError` if a state does not come, or not in `timeout_s`.
        """
        awaited = self._awaited
        with self._changed:
            self._changed.wait_for(lambda: awaited.problem or not awaited.missing, timeout_s)
            if awaited.missing and not awaited.problem:
                who = ", ".join(map(str, awaited.missing))
                awaited.problem = f"trainer {who} did not send its state in {timeout_s:g} s"
        if awaited.problem:
            error = JobError(awaited.problem, code=ErrorCode.CUT_GIVEN_UP)
            for file in awaited.files.values():
                with file.lock:
                    file.give_up(error)
            raise error
        return [
            {"name": file.name, "seal": file.seal.to_plain(), "tables": [], "trainer": trainer}
            for trainer, file in awaited.files.items()
            if file.seal is not None
        ]

    def superseded(self, cut: int) -> None:
        """Give states of earlier cuts up: trainers take part in `cut`."""
        if self._awaited.cut < cut:
            self._fail(self._awaited, f"cut {cut} was proposed before all states had come")

    def left(self, trainer: int) -> None:
        """Give the state of a trainer up that has left, unless it is complete."""
        if trainer in self._awaited.missing:
            self._fail(self._awaited, f"trainer {trainer} left before it had sent its state")

    def stop(self) -> None:
        """Wait no longer: the pserver ends."""
        self._fail(self._awaited, "the pserver is shutting down")

    def _fail(self, awaited: _Awaited, why: str) -> None:
        with self._changed:
            if awaited.missing and not awaited.problem:
                awaited.problem = why
            self._changed.notify_all()


def _unawaited(page: SentPage, why: str) -> JobError:
    return JobError(
        f"cut {page.cut} was given up by trainer {page.trainer}: {why}. Training goes on.",
        code=ErrorCode.CUT_GIVEN_UP,
        hint="The next cut is made by the same schedule.",
    )
