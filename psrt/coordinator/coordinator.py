"""Cuts of a whole job as pure decisions: (event, now) → instructions.

    IDLE ──request, or due by the schedule──▶ PROPOSED ──part of every pserver──▶ Commit ─▶ IDLE
                                              └── failed, or too late ─▶ Discard ─▶ IDLE

Trainers learn of a proposal by WATCH, which waits for it; in Sync by the replies of one round, so
that all of them take part behind the same round. A pserver reports its part when it is on disk, and
learns what became of the cut: a later part may continue a complete cut only (`part_chain`).
At a cut that changes the number of trainers all leave and join again: `resizing` of pservers.
`Commit` writes the manifest, the only thing that makes parts a cut; without it a crash at any time
leaves the cuts that were complete before. Numbers only grow, also over restarts: `newest` is that
of the newest cut or part in the directory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from psrt.coordinator.instructions import Announce, Caller, Commit, CutInstruction, Discard, Done
from psrt.coordinator.schedule import CutSchedule
from psrt.core.errors import ErrorCode, JobError, PsrtError


@dataclass
class _Change:
    """A change of the number of trainers, and all calls that ask for it."""

    trainers: int
    calls: list[Caller]


@dataclass
class _Proposal:
    number: int
    began_s: float
    change: _Change | None = None
    parts: dict[str, str] = field(default_factory=dict)
    participants: set[str] = field(default_factory=set)
    reports: list[Caller] = field(default_factory=list)
    committing: bool = False


class CutCoordinator:
    """The cuts of one job; `endpoints` are its pservers in the order of the plan.

    `steps()` is the number of rounds or mini-batches so far, for the schedule. `complete` is the
    newest complete cut, 0 = none.
    """

    def __init__(
        self,
        endpoints: Sequence[str],
        schedule: CutSchedule,
        timeout_s: float,
        newest: int = 0,
        steps: Callable[[], int] = lambda: 0,
        complete: int = 0,
    ) -> None:
        self.newest = newest
        self.complete = complete
        self._first, self._all_complete = complete, {complete}
        self._endpoints = tuple(endpoints)
        self._schedule, self._timeout_s, self._steps = schedule, timeout_s, steps
        self._proposal: _Proposal | None = None
        self._last_began_s: float | None = None
        self._last_step = 0
        self._watches: list[tuple[Caller, int]] = []
        self._requests: list[Caller] = []
        self._later: list[Caller] = []  # wait for the end of the cut under way, then for the next
        self._changes: list[_Change] = []
        self._superseded: PsrtError | None = None

    # --- events ------------------------------------------------------------------------------

    def watch(self, call: Caller, known: int) -> list[CutInstruction]:
        """Add a WATCH of a trainer that has seen cut `known`; it waits for a newer proposal."""
        self._watches.append((call, known))
        return self._announce()

    def unwatch(self, call: Caller) -> None:
        """Forget a WATCH whose caller has gone."""
        self._watches = [each for each in self._watches if each[0] is not call]

    def request(
        self, call: Caller, now: float, trainers: int = 0, anew: bool = False
    ) -> list[CutInstruction]:
        """Add a CHECKPOINT; it waits for the cut under way, or for a new one.

        With `anew` a cut under way does not count: it may lack what was acknowledged before this
        call. A cut from which the job goes on with `trainers` trainers is proposed once the cut
        under way, and earlier changes of their number, have ended; one that is repeated, as over
        another connection, ends with the first.
        """
        if trainers:
            self._ask_for_change(call, trainers)
        elif anew and self._proposal is not None:
            self._later.append(call)
        else:
            self._requests.append(call)
        return self._propose(now) if self._proposal is None else []

    def tick(self, now: float) -> list[CutInstruction]:
        """Propose a cut that is due or asked for, give up one that takes too long."""
        if self._proposal is None:
            is_asked = bool(self._changes or self._later)
            return self._propose(now) if is_asked or self._is_due(now) else []
        proposal = self._proposal
        if proposal.committing or now < proposal.began_s + self._timeout_s:
            return []
        missing = [each for each in self._endpoints if each not in proposal.parts]
        return self.failed(
            proposal.number, f"{', '.join(missing)} did not write a part in {self._timeout_s:g} s"
        )

    def part(
        self,
        number: int,
        endpoint: str,
        record: str,
        participants: str = "",
        base: int = 0,
        call: Caller = None,
    ) -> list[CutInstruction]:
        """Record that a pserver has written its part; a repeated or late report changes nothing.

        `participants` are the trainers that took part, with their processes and positions. Parts
        with different ones do not belong together: a trainer joined or was replaced in between.
        `base` is the cut that the part continues, 0 = none; it must be the newest complete one.
        `call` is answered once the cut is complete or given up.
        """
        proposal = self._proposal
        if proposal is None or number != proposal.number:
            return [] if call is None else [self._done_before(number, call)]
        if call is not None:
            proposal.reports.append(call)
        if proposal.committing:
            return []
        if base not in (0, self.complete):
            return self.failed(number, f"{endpoint} continues cut {base}, which is not complete")
        if endpoint in self._endpoints:
            proposal.parts[endpoint] = record
            proposal.participants.add(participants)
        if len(proposal.participants) > 1:
            return self.failed(number, "a trainer joined or was replaced while others took part")
        if len(proposal.parts) < len(self._endpoints):
            return []
        proposal.committing = True
        return [Commit(number, dict(proposal.parts))]

    def committed(self, number: int) -> list[CutInstruction]:
        """Record that the manifest of a cut is on disk."""
        proposal = self._proposal
        assert proposal is not None, "a proposed cut is committed"
        assert proposal.number == number, "only the proposed cut is committed"
        self._proposal, self.complete = None, number
        self._all_complete.add(number)
        return [Done(call, number) for call in self._take_waiting(proposal)]

    def failed(self, number: int, why: str) -> list[CutInstruction]:
        """Give up the cut: a part or its manifest could not be written. Training goes on."""
        proposal = self._proposal
        if proposal is None or proposal.number != number:
            return []
        self._proposal = None
        error, calls = _given_up(number, why), self._take_waiting(proposal)
        return [Discard(number, why), *(Done(call, number, error) for call in calls)]

    def no_part(self, number: int, why: str) -> list[CutInstruction]:
        """Give up a cut of which a pserver has no part.

        A report that comes while the manifest is being written is late: all parts are there.
        """
        if self._proposal is not None and self._proposal.committing:
            return []
        return self.failed(number, why)

    def left_open(self, number: int, error: PsrtError, is_superseded: bool) -> list[CutInstruction]:
        """End the waits for a cut whose manifest may count for another coordinator.

        Nothing of it is deleted. With `is_superseded` another one has taken over: no more cuts are
        proposed.
        """
        self._superseded = self._superseded or (error if is_superseded else None)
        proposal, self._proposal = self._proposal, None
        calls = self._take_requests() if proposal is None else self._take_waiting(proposal)
        return [Done(call, number, error) for call in calls]

    def give_up_changes(self, why: str) -> list[CutInstruction]:
        """Give up changes of the number of trainers: the cut of one, and those that wait."""
        waiting, self._changes = self._changes, []
        asked = [call for change in waiting for call in change.calls]
        done = [Done(call, 0, _given_up(self.newest + 1, why)) for call in asked]
        return [*done, *(self._end(why) if self.trainers else [])]

    def end(self, why: str) -> list[CutInstruction]:
        """Give up the cut, and those asked for: the pserver ends. A manifest under way is still
        written."""
        waiting, self._later = self._later, []
        done = [Done(call, 0, _given_up(self.newest + 1, why)) for call in waiting]
        return [*done, *self.give_up_changes(why), *self._end(why)]

    def _end(self, why: str) -> list[CutInstruction]:
        if self._proposal is None or self._proposal.committing:
            return []
        return self.failed(self._proposal.number, why)

    # --- questions ---------------------------------------------------------------------------

    @property
    def proposed(self) -> int:
        """The number of the cut that trainers should take part in, 0 = none."""
        return self._proposal.number if self._proposal is not None else 0

    @property
    def trainers(self) -> int:
        """The number of trainers with which the job goes on from the proposed cut, 0 = it stays."""
        change = self._proposal.change if self._proposal is not None else None
        return change.trainers if change is not None else 0

    @property
    def has_parts(self) -> bool:
        """True while a cut has some of its parts, so that the others are about to come."""
        return self._proposal is not None and bool(self._proposal.parts)

    # --- inside ------------------------------------------------------------------------------

    def _began_s(self, now: float) -> float:
        if self._last_began_s is None:
            self._last_began_s = now
        return self._last_began_s

    def _is_due(self, now: float) -> bool:
        return self._schedule.is_due(self._steps() - self._last_step, now - self._began_s(now))

    def _propose(self, now: float) -> list[CutInstruction]:
        self._requests += self._later
        self._later = []
        if self._superseded is not None:
            changes, self._changes = self._changes, []
            asked = (*self._take_requests(), *(call for each in changes for call in each.calls))
            return [Done(call, 0, self._superseded) for call in asked]
        self.newest += 1
        self._last_began_s, self._last_step = now, self._steps()
        change = self._changes.pop(0) if self._changes else None
        self._proposal = _Proposal(self.newest, now, change)
        return self._announce()

    def _ask_for_change(self, call: Caller, trainers: int) -> None:
        """Add a call to the last change that was asked for, if that is the same, or a new one."""
        under_way = self._proposal.change if self._proposal is not None else None
        last = self._changes[-1] if self._changes else under_way
        if last is not None and last.trainers == trainers:
            last.calls.append(call)
        else:
            self._changes.append(_Change(trainers, [call]))

    def _announce(self) -> list[CutInstruction]:
        due = [(call, known) for call, known in self._watches if known < self.proposed]
        self._watches = [each for each in self._watches if each not in due]
        return [Announce(call, self.proposed, self.trainers) for call, _ in due]

    def _take_requests(self) -> list[Caller]:
        taken, self._requests = self._requests, []
        return taken

    def _take_waiting(self, proposal: _Proposal) -> list[Caller]:
        """The callers that wait for the end of a cut."""
        change = [] if proposal.change is None else proposal.change.calls
        return [*proposal.reports, *self._take_requests(), *change]

    def _done_before(self, number: int, call: Caller) -> Done:
        """The answer to a report that was repeated or late.

        A pserver that learns here that the cut was given up deletes its part. Number 0 stands
        for an end that is unknown: a former coordinator had the cut.
        """
        if number in self._all_complete:
            return Done(call, number)
        if number < self._first:
            return Done(call, 0)
        return Done(call, number, _given_up(number, "it is no longer under way"))


def _given_up(number: int, why: str) -> JobError:
    return JobError(
        f"cut {number} was given up: {why.removesuffix('.')}. Earlier cuts are complete, and "
        "training goes on.",
        code=ErrorCode.CUT_GIVEN_UP,
        hint="See the logs of the pservers; the next cut is made by the same schedule.",
    )
