"""A trainer joins its job: HELLO, ATTEND and REGISTER at every pserver, and again where needed.

With backups a pserver that was started again may answer a newcomer before its backup serves its
part. The other pservers refuse what was found there (`TAKING_OVER`), and the trainer begins once
more: by then that pserver is deposed, and the trainer goes to the backup like the others.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from psrt.communicator.base import Beginning
from psrt.communicator.requests.endpoint_threads import EndpointThreads, results
from psrt.communicator.requests.kept_calls import KeptCalls
from psrt.communicator.requests.lineage import Lineage
from psrt.communicator.requests.recovery import DurablePushes
from psrt.communicator.requests.router import Router
from psrt.core.errors import ErrorCode, UnavailableError
from psrt.core.specs import to_json
from psrt.core.threads import CrashReport, start_timer
from psrt.partition.plan import PartitionPlan
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method

T = TypeVar("T")

log = logging.getLogger("psrt.communicator")

SLOW_S = 3.0  # a longer registration is reported

AGAIN_S = 0.1
"""Seconds before pservers are asked again while a backup is about to serve."""


class JoiningCalls:
    """The part of `JobCalls` by which a trainer takes its place.

    `resumed` is the cut that the tables began with, with positions in it, or the report of a warm
    start. `durable` keeps pushes until a cut has them, if the job asks for it; `kept_calls` has
    other calls that a recovered pserver gets again.
    """

    plan: PartitionPlan
    call_timeout_s: float
    crashes: CrashReport
    durable: DurablePushes | None = None
    resumed = Beginning()
    lineage: Lineage
    router: Router
    kept_calls: KeptCalls
    _found: pb.Register | None = None
    _clients: tuple[Client, ...]
    _threads: EndpointThreads

    def connect(self, timeout_s: float, on_wait: Callable[[str], None]) -> None:
        """Connect to every pserver, wait for those that are not up yet, register their tables."""
        found = self._registered(timeout_s, on_wait)
        assert self._found is not None, "REGISTER has sent it"
        reached = self.lineage.join(self._clients[0].incarnation, found, self.router.buckets)
        replaces = bool(self._found.predecessor) and not self._found.begins_anew
        self.resumed = self.resumed._replace(reached=reached, replaces=replaces)
        if self.durable is not None:
            self.durable.registered()

    def _registered(self, timeout_s: float, on_wait: Callable[[str], None]) -> list[pb.Lineage]:
        """Join, again and again while a backup is about to serve a part; returns what each pserver
        has of this trainer's former processes."""
        ends_s, told = time.monotonic() + timeout_s, ""
        while True:
            left_s = max(ends_s - time.monotonic(), AGAIN_S)
            try:
                return self._join(left_s, on_wait)
            except UnavailableError as error:
                if error.code is not ErrorCode.TAKING_OVER or left_s <= AGAIN_S:
                    raise
                if error.message != told:
                    on_wait(told := error.message)
            time.sleep(AGAIN_S)

    def _join(self, timeout_s: float, on_wait: Callable[[str], None]) -> list[pb.Lineage]:
        numbers = range(len(self._clients))
        dials = [partial(self._dial, number, timeout_s, on_wait) for number in numbers]
        hellos = self._on_all("start: connecting to the pservers", dials, timeout_s)
        self._found = self._register_of(hellos)
        if self.durable is not None:
            self.durable.begin(self._rejoin)
        jobs = [partial(self._begin, each, timeout_s, on_wait) for each in self._clients]
        return self._on_all("start: registering tables", jobs, timeout_s)

    def _register_of(self, hellos: Sequence[pb.HelloReply]) -> pb.Register:
        """The processes that were found, and the one that this process replaces.

        One that joins once more holds its place already: it has replaced that process before.
        """
        before = self._found or pb.Register(begins_anew=True)
        replaced = max(hello.held_by for hello in hellos)
        return pb.Register(
            pservers=[
                pb.PserverProcess(endpoint=client.endpoint, incarnation=hello.incarnation)
                for client, hello in zip(self._clients, hellos, strict=True)
            ],
            predecessor=replaced or before.predecessor,
            begins_anew=before.begins_anew
            and all(hello.held_is_new for hello in hellos if hello.held_by),
        )

    def _dial(self, number: int, timeout_s: float, on_wait: Callable[[str], None]) -> pb.HelloReply:
        """Connect and attend; the wait for other pservers, before REGISTER, may be long."""
        client = self._clients[number]
        hello = client.connect(timeout_s, on_wait)
        client.attend(timeout_s)
        if self.durable is not None:
            self.durable.attended(number)
        return hello

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


def _beginning(reply: pb.Header) -> Beginning:
    cut, report = reply.cut, reply.register.report
    return Beginning(cut.number, cut.position, tuple(cut.positions), report)


def _registering(endpoint: str, tables: int) -> str:
    return (
        f"waiting for pserver {endpoint} to make {tables} tables; kernels of optimizers that are "
        "new to its host are compiled first, which can take half a minute"
    )
