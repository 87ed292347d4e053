"""Calls of a trainer about its job: join it, meet others, take part in cuts, complete.

Each call to all pservers goes to them in parallel and ends when all have answered, or with the
first failure. Calls about parameters are in `pserver_group`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import TypeAlias, TypeVar

from psrt.communicator.base import Beginning, Timeline
from psrt.communicator.members import Members, members_of
from psrt.communicator.requests.asked_cut import ask_for_cut
from psrt.communicator.requests.endpoint_threads import EndpointThreads, results
from psrt.communicator.requests.kept_calls import KeptCalls
from psrt.communicator.requests.lineage import Lineage, leave
from psrt.communicator.requests.recovery import DurablePushes
from psrt.communicator.requests.router import Router
from psrt.communicator.requests.state_calls import StatePage, send_state, stored_states
from psrt.core.errors import DeadlineError, PsrtError
from psrt.core.specs import to_json
from psrt.core.threads import CrashReport, start_timer
from psrt.partition.plan import PartitionPlan
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method

T = TypeVar("T")

log = logging.getLogger("psrt.communicator")

NO_SPAN = nullcontext()
SLOW_S = 3.0  # a longer registration is reported

OnCut: TypeAlias = Callable[[int], None]
"""Called with the number of a cut that this trainer took part in, on any thread."""


def ignore_cut(number: int) -> None:
    """The `OnCut` that does nothing."""


class JobCalls:
    """The part of `PserverGroup` that moves no parameters.

    `on_cut` is called after this trainer took part in a cut, `taken_cut` is the newest.

    `resumed` is the cut that the tables began with, with positions in it, or the report of a warm
    start. `durable` keeps pushes until a cut has them, if the job asks for it; `kept_calls` has
    other calls that a recovered pserver gets again.
    """

    plan: PartitionPlan
    call_timeout_s: float
    crashes: CrashReport
    timeline: Timeline | None = None
    durable: DurablePushes | None = None
    resumed = Beginning()
    on_cut: OnCut
    taken_cut: int
    lineage: Lineage
    router: Router
    _found: pb.Register
    _resizing_cut: int
    _trainers_from_it: int
    kept_calls: KeptCalls
    _clients: tuple[Client, ...]
    _threads: EndpointThreads

    @property
    def trainers(self) -> int:
        """T, the number of trainers of the job."""
        return self._clients[0].trainers

    @property
    def makes_cuts(self) -> bool:
        """True if the job writes cuts; known once connected."""
        return self._clients[0].makes_cuts

    def connect(self, timeout_s: float, on_wait: Callable[[str], None]) -> None:
        """Connect to every pserver, wait for those that are not up yet, register their tables."""
        dials = [partial(_dial, client, timeout_s, on_wait) for client in self._clients]
        hellos = self._on_all("start: connecting to the pservers", dials, timeout_s)
        self._found = pb.Register(
            pservers=[
                pb.PserverProcess(endpoint=client.endpoint, incarnation=hello.incarnation)
                for client, hello in zip(self._clients, hellos, strict=True)
            ],
            predecessor=max(hello.held_by for hello in hellos),
            begins_anew=all(hello.held_is_new for hello in hellos if hello.held_by),
        )
        if self.durable is not None:
            self.durable.begin(self._rejoin)
        jobs = [partial(self._begin, each, timeout_s, on_wait) for each in self._clients]
        found = self._on_all("start: registering tables", jobs, timeout_s)
        reached = self.lineage.join(self._clients[0].incarnation, found, self.router.buckets)
        replaces = bool(self._found.predecessor) and not self._found.begins_anew
        self.resumed = self.resumed._replace(reached=reached, replaces=replaces)
        if self.durable is not None:
            self.durable.registered()

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

    def _begin(
        self, client: Client, timeout_s: float, on_wait: Callable[[str], None]
    ) -> pb.Lineage:
        """Register tables, and record where the job begins; returns the pserver's record of this
        trainer's former processes."""
        tables = len(self.plan.specs_for(client.endpoint))
        report = partial(on_wait, _registering(client.endpoint, tables))
        slow = start_timer(SLOW_S, report, f"slow start {client.endpoint}", self.crashes)
        try:
            reply = self._register(client, timeout_s)
            if client is self._clients[0]:
                self.resumed = _beginning(reply)
                if self.durable is not None:
                    self.durable.joined(reply.cut.newest)
        finally:
            slow.set()
        log.debug("registered %d tables at %s", tables, client.endpoint)
        return reply.register.lineage

    def _register(self, client: Client, timeout_s: float) -> pb.Header:
        specs = [to_json(spec) for spec in self.plan.specs_for(client.endpoint)]
        header = pb.Header(register=self._found, cut=pb.Cut(last_push=client.last_push))
        header.register.specs.extend(specs)
        header.register.warm_start = self.plan.warm_start
        if self.plan.warm_start:
            whole = (to_json(spec) for spec in self.plan.whole_specs())
            header.register.parameters.extend(whole)
        return client.call(Method.REGISTER, header=header, timeout_s=timeout_s).header

    def _rejoin(self, client: Client) -> bool:
        """Join a pserver that was started again; True if it knows that this trainer completed."""
        client.attend(self.call_timeout_s)
        reply = self._register(client, self.call_timeout_s)
        self.kept_calls.send_again(client, self.call_timeout_s)
        return bool(reply.complete.recorded)

    def _on_all(self, doing: str, jobs: Sequence[Callable[[], T]], timeout_s: float) -> list[T]:
        futures = [self._threads.submit(i, job) for i, job in enumerate(jobs)]
        return results(futures, self.plan.endpoints, doing, timeout_s)


def _dial(client: Client, timeout_s: float, on_wait: Callable[[str], None]) -> pb.HelloReply:
    """Connect and attend; the wait for other pservers, before REGISTER, may be long."""
    hello = client.connect(timeout_s, on_wait)
    client.attend(timeout_s)
    return hello


def _beginning(reply: pb.Header) -> Beginning:
    cut, report = reply.cut, reply.register.report
    return Beginning(cut.number, cut.position, tuple(cut.positions), report)


def _registering(endpoint: str, tables: int) -> str:
    return (
        f"waiting for pserver {endpoint} to make {tables} tables; kernels of optimizers that are "
        "new to its host are compiled first, which can take half a minute"
    )
