"""State and calls shared by the communicators of all modes.

    start ─▶ … ─▶ stop: the end of the mode, once; later calls return the same parameters
                  close: sends nothing, works after a failure too

A failure that leaves pservers with different parts of an update is permanent: every later call
raises it again.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial

from psrt.communicator.base import (
    Backlog,
    Beginning,
    BeginsAt,
    ComingRows,
    Position,
    Timeline,
    Versions,
    no_position,
)
from psrt.communicator.requests import CutWatch, PserverGroup, take_part
from psrt.core.counters import Counters
from psrt.core.errors import ErrorCode, InternalError, PsrtError, UnavailableError
from psrt.core.types import F32, I64
from psrt.rpc.methods import TRAINED

LEAST_S = 1.0
"""Granted to a call at the end of training even if earlier calls used up the time to stop."""


class BaseCommunicator(ABC):
    """`on_wait` receives the name of each pserver that `start` still waits for.

    `_versions` are those of the parameters that the next gradients are computed on.
    """

    one_call_step = False
    _watches_cuts = True
    """True if a thread waits for proposals of cuts; otherwise replies bring them."""

    def __init__(self, pservers: PserverGroup, on_wait: Callable[[str], None]) -> None:
        self._pservers, self._on_wait = pservers, on_wait
        self._versions: Versions = {}
        self._final: dict[str, F32] | None = None
        self._failure: PsrtError | None = None
        self._closed = self._was_interrupted = False
        self._position: Position = no_position
        self._next_position: Position = no_position
        self._begin: BeginsAt = lambda resumed: no_position
        self._cut_watch = CutWatch(pservers, self._take_part)
        self._follows_resizes, self._resized_to = False, 0
        self._resizing = threading.Lock()  # held while the number of trainers changes

    @property
    def counters(self) -> Counters:
        return self._pservers.counters

    @property
    def makes_cuts(self) -> bool:
        return self._pservers.makes_cuts

    @property
    def resumed(self) -> Beginning:
        return self._pservers.resumed

    def watch(self, timeline: Timeline | None) -> None:
        self._pservers.timeline = timeline

    def backlog(self) -> Backlog:
        """See `Communicator.backlog`."""
        durable = self._pservers.durable
        kept = (0, 0) if durable is None else durable.kept
        return Backlog(*self._on_its_way(), *kept)

    def use_rates(self, rates: Mapping[str, float], sums: bool = False) -> None:
        """See `Communicator.use_rates`."""
        router = self._pservers.router
        router.rates, router.sums = {**router.rates, **rates}, sums

    def _on_its_way(self) -> tuple[int, int]:
        """Gradients that wait to be pushed, and ended steps that are not in the parameters."""
        return 0, 0

    def pull_rows(self, wanted: Mapping[str, I64]) -> dict[str, F32]:
        """See `Communicator.pull_rows`."""
        self._check()
        rows, versions = self._pservers.pull_rows(wanted)
        self._pulled(versions)
        return rows

    def read_behind(self, wanted: Mapping[str, I64]) -> ComingRows | None:
        """See `Communicator.read_behind`."""
        return None

    def stop(self, timeout_s: float, interrupted: bool = False) -> dict[str, F32]:
        """See `Communicator.stop`."""
        if self._final is None:
            self._was_interrupted = interrupted
            try:
                self._final = self._last(timeout_s)
            finally:
                self.close()
        return self._final

    def begins_at(self, begin: BeginsAt) -> None:
        """See `Communicator.begins_at`."""
        self._begin = begin

    def continues_at(self, position: Position) -> None:
        """See `Communicator.continues_at`."""
        self._next_position = position

    def marks(self, reached: str) -> None:
        """See `Communicator.marks`."""
        self._pservers.lineage.position = reached

    @property
    def taken_cut(self) -> int:
        """See `Communicator.taken_cut`."""
        return self._pservers.taken_cut

    def request_cut(self, timeout_s: float, behind: int = 0) -> int:
        """See `Communicator.request_cut`."""
        return self._pservers.request_cut(timeout_s, behind)

    def on_cut(self, action: Callable[[int], None]) -> None:
        """See `Communicator.on_cut`."""
        self._pservers.on_cut = action

    def at_rest(self) -> AbstractContextManager[None]:
        """See `Communicator.at_rest`."""
        return nullcontext()

    def is_alone(self) -> None:
        """See `Communicator.is_alone`."""
        if self._pservers.makes_cuts and not self._watches_cuts:
            self._watches_cuts = True
            self._cut_watch.start()

    def declare_trained(self) -> None:
        """See `Communicator.declare_trained`."""
        self._pservers.meet(TRAINED, 1, 0)

    def follow_resizes(self) -> None:
        """See `Communicator.follow_resizes`."""
        self._follows_resizes = True

    @property
    def resized_to(self) -> int:
        """See `Communicator.resized_to`."""
        with self._resizing:
            return self._resized_to

    def close(self) -> None:
        self._closed = True
        self._cut_watch.close()
        self._pservers.close()

    def _connect(self, timeout_s: float) -> None:
        self._pservers.connect(timeout_s, self._on_wait)
        begins = self._begin(self.resumed)
        if not self._pservers.lineage.is_kept:
            self._pservers.lineage.forget()
        self._is_at(begins)
        if self._pservers.makes_cuts and self._watches_cuts:
            self._cut_watch.start()

    def _is_at(self, position: Position) -> None:
        """Record where this trainer goes on, without a step in between."""
        self._position = self._next_position = position

    @abstractmethod
    def _last(self, timeout_s: float) -> dict[str, F32]:
        """Flush, then report to every pserver that this trainer has completed."""

    @abstractmethod
    def _pushes_held(self, timeout_s: float) -> AbstractContextManager[str]:
        """Hold pushes back for a cut: see `psrt.communicator.requests.cut_watch.Hold`."""

    def _take_part(self, number: int) -> None:
        """Take part in cut `number`, on the thread that waits for proposals."""
        trainers = self._pservers.trainers_from(number) if self._follows_resizes else 0
        if trainers:
            with self._resizing:
                on_resized = partial(self._resized, trainers, number)
                take_part(self._pservers, number, self._pushes_held, trainers, on_resized)
        elif take_part(self._pservers, number, self._pushes_held):
            self._pservers.took_part(number)

    def _resized(self, trainers: int, number: int) -> None:
        """Let every later call of the training thread raise: this process has no place any more."""
        self._resized_to = trainers
        self._failure = UnavailableError(
            f"the job goes on with {trainers} trainers from cut {number} on.",
            code=ErrorCode.RESIZING,
        )

    def _complete(self, timeout_s: float, position: str) -> None:
        """Complete, or leave after an interruption, unless the number of trainers has changed; it
        does not change meanwhile."""
        with self._resizing:
            if self._resized_to:
                self._check()
            if self._was_interrupted:
                self._pservers.leave(timeout_s)
            else:
                self._pservers.complete(timeout_s, position)

    def _pulled(self, versions: Versions) -> None:
        """Gradients are computed on these versions from now on; others stay as they were."""
        self._versions = {**self._versions, **versions}

    def _check(self) -> None:
        """Raise the permanent failure, or `InternalError` after `close`."""
        if self._failure is not None:
            raise self._failure
        if self._closed:
            raise InternalError("the communicator was used after it was stopped")

    @contextmanager
    def _permanent_failure(self) -> Iterator[None]:
        """Later calls raise a failure of this block again."""
        try:
            yield
        except PsrtError as error:
            self._failure = error
            raise


def time_left(deadline: float) -> float:
    """Seconds until `deadline` of `time.monotonic`, at least `LEAST_S`."""
    return max(deadline - time.monotonic(), LEAST_S)


__all__ = ["BaseCommunicator", "time_left"]
