"""Calls of a trainer about its job: meet others, take part in cuts, complete; `joining` has more.

Each call to all pservers goes to them in parallel and ends when all have answered, or with the
first failure. Calls about parameters are in `pserver_group`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import TypeAlias

from psrt.communicator.base import Timeline
from psrt.communicator.members import Members, members_of
from psrt.communicator.requests.asked_cut import ask_for_cut
from psrt.communicator.requests.joining import JoiningCalls
from psrt.communicator.requests.lineage import leave
from psrt.communicator.requests.state_calls import StatePage, send_state, stored_states
from psrt.core.errors import DeadlineError, PsrtError
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method

NO_SPAN = nullcontext()

OnCut: TypeAlias = Callable[[int], None]
"""Called with the number of a cut that this trainer took part in, on any thread."""


def ignore_cut(number: int) -> None:
    """The `OnCut` that does nothing."""


class JobCalls(JoiningCalls):
    """The part of `PserverGroup` that moves no parameters.

    `on_cut` is called after this trainer took part in a cut, `taken_cut` is the newest.
    """

    timeline: Timeline | None = None
    on_cut: OnCut
    taken_cut: int
    _resizing_cut: int
    _trainers_from_it: int

    @property
    def trainers(self) -> int:
        """T, the number of trainers of the job."""
        return self._clients[0].trainers

    @property
    def makes_cuts(self) -> bool:
        """True if the job writes cuts; known once connected."""
        return self._clients[0].makes_cuts

    def open_rounds(self) -> list[dict[int, int]]:
        """The open round of each bucket, by pserver; buckets that had no round are left out.

        A trainer that joins late begins there.
        """
        jobs = [
            partial(client.call, Method.STATUS, timeout_s=self.call_timeout_s)
            for client in self._clients
        ]
        replies = self._on_all("start: asking for the open round", jobs, self.call_timeout_s)
        rounds = [json.loads(reply.header.status_json)["rounds"] for reply in replies]
        return [{int(bucket): open_round for bucket, open_round in of_one} for of_one in rounds]

    @property
    def trainer(self) -> int:
        """The number of this trainer."""
        return self._clients[0].trainer

    def members(self) -> Members:
        """The first pserver's view of the job; raises the error that ended it."""
        reply = self._clients[0].call(Method.STATUS, timeout_s=self.call_timeout_s)
        return members_of(reply.header.status_json)

    def meet(self, clock: str, reached: int, awaited: int, timeout_s: float | None = None) -> int:
        """Report the time `reached` on a clock; wait until all other trainers are at `awaited`.

        Returns the least time of the others; with none left, a number larger than any time. The
        first pserver of the plan keeps the clocks.
        """
        meet = pb.Meet(clock=clock, reached=reached, awaited=awaited)
        return int(self._meet(meet, timeout_s).slowest)

    def begin_clock(self, clock: str) -> int:
        """The time at which this process begins on a clock: above 0 if it replaces another."""
        return int(self._meet(pb.Meet(clock=clock, begins=True)).begin)

    def watch(self, known: int, timeout_s: float) -> int:
        """Wait until the first pserver proposes a newer cut than `known`; return the newest."""
        header = pb.Header(cut=pb.Cut(number=known))
        cut = self._clients[0].call(Method.WATCH, header=header, timeout_s=timeout_s).header.cut
        self.announced(cut)
        if self.durable is not None:
            self.durable.completed(cut.complete)
            if cut.number > known:
                self.durable.gave_up()  # if not complete by now, the cut before never will be
        return int(cut.number)

    def announced(self, cut: pb.Cut) -> None:
        """Record a proposed cut from which the job goes on with another number of trainers."""
        if cut.trainers and cut.number > self._resizing_cut:
            self._resizing_cut, self._trainers_from_it = cut.number, cut.trainers

    def trainers_from(self, number: int) -> int:
        """The number of trainers with which the job goes on from cut `number`, 0 = it stays."""
        return self._trainers_from_it if number == self._resizing_cut else 0

    def cut(self, number: int, position: str, timeout_s: float, trainers: int = 0) -> None:
        """Take part in a cut: wait until every pserver has frozen its tables.

        The caller has no push under way and starts none meanwhile. It goes on at `position`. With
        `trainers` every pserver has begun anew with this number of trainers at the end, and calls
        of this process are refused.
        """
        if self.durable is not None:
            self.durable.takes_part(number)
        asked = number, position, timeout_s, trainers
        jobs = [partial(self._cut_at, each, *asked) for each in self._clients]
        try:
            self._on_all(f"cut {number}", jobs, timeout_s)
        except PsrtError:
            if self.durable is not None:
                self.durable.gave_up()
            raise

    def _cut_at(
        self, client: Client, number: int, position: str, timeout_s: float, trainers: int
    ) -> None:
        """Send CUT, again and again if it takes long: a connection may fall silent meanwhile."""
        cut = pb.Cut(number=number, position=position, last_push=client.last_push)
        cut.trainers = trainers
        while timeout_s > self.call_timeout_s:
            with suppress(DeadlineError):
                client.call(Method.CUT, header=pb.Header(cut=cut), timeout_s=self.call_timeout_s)
                return
            timeout_s -= self.call_timeout_s
        client.call(Method.CUT, header=pb.Header(cut=cut), timeout_s=timeout_s)

    def send_state(self, number: int, pages: Sequence[StatePage]) -> None:
        """Add the state of this trainer to a cut that it takes part in."""
        send_state(self._state_client, number, pages, self.call_timeout_s)

    def stored_states(self) -> Iterator[tuple[int, StatePage]]:
        """The states that this trainer goes on from: see `state_calls.stored_states`."""
        return stored_states(self._state_client, self.call_timeout_s)

    @property
    def _state_client(self) -> Client:
        """The pserver that keeps the state of this trainer: they share the trainers."""
        return self._clients[self.trainer % len(self._clients)]

    def took_part(self, number: int) -> None:
        """Record that this trainer took part in a cut."""
        self.taken_cut = number
        self.on_cut(number)

    def request_cut(self, timeout_s: float, behind: int) -> int:
        """Ask the first pserver for a cut behind `behind`; its number once complete."""
        number = ask_for_cut(self._clients, timeout_s, behind)
        if self.durable is not None:
            self.durable.completed(number)
        return number

    def complete(self, timeout_s: float, position: str = "") -> None:
        """Report to every pserver that this trainer has finished, and goes on at `position`."""
        complete = self._complete_at if self.durable is None else self.durable.complete
        jobs = [partial(complete, n, timeout_s, position) for n in range(len(self._clients))]
        self._on_all("stop: completing", jobs, timeout_s)
        self._on_all("stop: confirming", [each.confirm for each in self._clients], timeout_s)

    def _complete_at(self, endpoint: int, timeout_s: float, position: str) -> None:
        self._clients[endpoint].complete(timeout_s, position)

    def leave(self, timeout_s: float) -> None:
        """Report to every pserver that this trainer was asked to end, and has not completed."""
        self._on_all("leaving", [partial(leave, c, timeout_s) for c in self._clients], timeout_s)

    def _meet(self, meet: pb.Meet, timeout_s: float | None = None) -> pb.MeetReply:
        timeout_s = self.call_timeout_s if timeout_s is None else timeout_s
        with self.span("meet"):
            return self.kept_calls.meet(meet, timeout_s)

    def span(self, name: str) -> AbstractContextManager[None]:
        """A context manager that records its block as `name` in the timeline, if there is one."""
        return NO_SPAN if self.timeline is None else self.timeline.span(name, "communicate")
