"""The trainer's side of a lineage: its steps are numbered over all its processes.

Each push names the steps it covers and those that every pserver has (`settled`), with the position
of the data behind them. A process that takes a trainer's place begins behind the settled steps,
computes the next ones again, and leaves out what a pserver has. Pservers keep the record:
`psrt.pserver.decisions.lineages`.

A caller that never names a position (`marks`) has no lineage: its pushes name nothing, and its
successor begins anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from psrt.communicator.requests.requests import Request
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method

Steps: TypeAlias = tuple[int, int]
"""The first and the last of a run of steps, which count from 1."""

LeaveOut: TypeAlias = Callable[[str, int, int], bool]
"""(parameter, endpoint, bucket) → True if that pserver has its gradient."""

WHOLE = ""
"""The lane of a whole call, or of a push's count of mini-batches."""

_Lane: TypeAlias = tuple[int, int, str]  # endpoint, bucket, name


class Settled(NamedTuple):
    """The steps that every pserver has, and the position behind them."""

    step: int
    position: str


class Lineage:
    """The steps of one trainer: `begun` by its former processes, and those that pservers have.

    `position` is where the data go on behind the running step, `ended` the step before it. With
    `keeps_reads` pservers keep what a step is computed on, for a successor that repeats it. Written
    before the first push, and then by the training thread alone.
    """

    def __init__(self, endpoints: int) -> None:
        self.origin = 0
        self.begun = 0
        self.position = ""
        self.repeated_to = self.ended = 0
        self.keeps_reads = False
        self._endpoints = endpoints
        self._complete: set[int] = set()
        self._had: dict[_Lane, list[Steps]] = {}

    @property
    def is_kept(self) -> bool:
        """True if the caller names positions."""
        return bool(self.position)

    def join(
        self, incarnation: int, found: Sequence[pb.Lineage], buckets: Iterable[tuple[int, int]]
    ) -> str:
        """Go on from what each pserver has recorded; returns the position to begin at, "" = anew.

        `buckets` are all pairs of endpoint and bucket that get a call in each step of a mode whose
        step is one call.
        """
        self.origin = incarnation
        running = [each for each in found if each.origin and not each.ended]
        if not running:
            return ""
        self.origin = running[0].origin
        of_it = {n: each for n, each in enumerate(found) if each.origin == self.origin}
        newest = max(of_it.values(), key=lambda each: each.settled)
        self.begun, position = int(newest.settled), str(newest.position)
        for endpoint, each in of_it.items():
            self._take(endpoint, each)
        return self._behind_whole(of_it.values(), list(buckets)) or position

    def forget(self) -> None:
        """Go on from nothing: the caller does not begin where its predecessor was."""
        self.begun = self.repeated_to = 0

    def has(self, endpoint: int, bucket: int, step: int, name: str = WHOLE) -> bool:
        """True if a former process has pushed this lane of `step` to a pserver."""
        if step > self.repeated_to:
            return False
        if endpoint in self._complete:
            return True
        had = self._had.get((endpoint, bucket, name), ())
        return any(first <= step <= last for first, last in had)

    def uncounted(self, endpoint: int, steps: Steps) -> int:
        """The number of `steps` that a pserver has not counted yet."""
        return sum(not self.has(endpoint, 0, step) for step in range(steps[0], steps[1] + 1))

    def counted_everywhere(self) -> int:
        """The number of steps behind `begun` that all pservers have counted."""
        steps = range(self.begun + 1, self._last + 1)
        all_ = range(self._endpoints)
        return sum(all(self.has(endpoint, 0, step) for endpoint in all_) for step in steps)

    def stamp(
        self,
        requests: Iterable[Request],
        settled: Settled,
        covers: Mapping[str, Steps],
        following: str = "",
    ) -> None:
        """Name in pushes the steps that they cover, by parameter, and the settled ones."""
        if not self.is_kept:
            return
        facts = {"origin": self.origin, "settled": settled.step, "position": settled.position}
        covered = [
            pb.Covered(name=n, first=first, last=last) for n, (first, last) in covers.items()
        ]
        for request in requests:
            named = pb.Lineage(**facts, following=following, bucket=request.bucket, covered=covered)
            named.keeps_reads = self.keeps_reads
            request.header.lineage.CopyFrom(named)

    def stamp_reads(self, requests: Iterable[Request]) -> None:
        """Name in pulls the step that is computed on them, if pservers are to keep replies."""
        for request in requests if self.is_kept and self.keeps_reads else ():
            named = pb.Lineage(origin=self.origin, settled=self.ended, keeps_reads=True)
            request.header.lineage.CopyFrom(named)

    @property
    def _last(self) -> int:
        """The last step that is in any lane of a pserver."""
        return max((last for had in self._had.values() for _, last in had), default=self.begun)

    def _take(self, endpoint: int, found: pb.Lineage) -> None:
        if found.completed:
            self._complete.add(endpoint)
        for each in found.covered:
            steps = int(each.first), int(each.last)
            self._had.setdefault((endpoint, int(each.bucket), str(each.name)), []).append(steps)
            self.repeated_to = max(self.repeated_to, steps[1])

    def _behind_whole(self, found: Iterable[pb.Lineage], buckets: Sequence[tuple[int, int]]) -> str:
        """Begin behind the next step too if every call of it has arrived; its position or ""."""
        step = self.begun + 1
        if not all(self.has(endpoint, bucket, step) for endpoint, bucket in buckets):
            return ""
        after = {str(each.following) for each in found if each.following}
        if not after or self._last != step:
            return ""
        self.begun = step
        return after.pop()


__all__ = ["WHOLE", "LeaveOut", "Lineage", "Settled", "Steps"]


def leave(client: Client, timeout_s: float) -> None:
    """Report to a pserver that this trainer was asked to end, and has not completed: a successor
    may go on with its lineage, if the job lets it."""
    left = pb.Header(complete=pb.Complete(interrupted=True))
    client.call(Method.COMPLETE, header=left, timeout_s=timeout_s)
