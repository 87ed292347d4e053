"""Durability of a trainer's pushes: cuts are asked for in time, recovered pservers get all again.

Pushes are kept (`retained`) until a complete cut has them; with `durability = "delta"` of a job,
until their pserver has them in a local cut. When half of the memory for them is used, a thread asks
for one or the other. A pserver that was killed and recovered is sent the rest again, under the same
push keys.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from psrt.communicator.requests.failover import PartFailover, failovers_of
from psrt.communicator.requests.ping_times import PingTimes
from psrt.communicator.requests.requests import Request
from psrt.communicator.requests.retained import RetainedPushes
from psrt.core.clock import MonotonicClock
from psrt.core.errors import ConfigError, DeadlineError, PsrtError
from psrt.core.threads import CrashReport, start_thread
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from psrt.rpc.pairs import pair_of

log = logging.getLogger("psrt.communicator")

PING_S = 0.25
"""Seconds without an answer until an idle pserver is called, and the time limit of the call."""

REPLICA_PING_S = 0.1
"""Seconds between two calls to a pserver that may fail over: its end is detected so soon."""

ROOM_S = 1.0
"""The longest wait of one push while the memory for retained ones is full."""

MOST = 4
"""Times `retained_mib` that are never passed."""


class DurablePushes:
    """The pushes of one trainer that are not durable yet; any thread calls this."""

    def __init__(
        self,
        clients: Sequence[Client],
        retained: RetainedPushes,
        call_timeout_s: float,
        crashes: CrashReport,
    ) -> None:
        self._clients, self._retained = tuple(clients), retained
        self._call_timeout_s, self._crashes = call_timeout_s, crashes
        self._is_replicated = clients[0].hello.durability == "replica"
        has_pairs = self._is_replicated and len(clients) > 1
        self._failovers: Sequence[PartFailover] = failovers_of(clients) if has_pairs else ()
        self._waits_for_deltas = clients[0].hello.durability in ("delta", "replica")
        self._asking, self._pinging = threading.Lock(), threading.Lock()
        self._ping_times = PingTimes(REPLICA_PING_S if self._is_replicated else PING_S)
        self._is_pinging = False
        self._closed = threading.Event()
        self._clock, self._has_ended = MonotonicClock(), False
        self._recorded: set[int] = set()  # the pservers that have the end of this trainer on disk

    def attended(self, number: int) -> None:
        """With backups, call pserver `number` now and then from now on, before this trainer has
        joined all: others may wait until it deposes one, too."""
        if self._failovers:
            self._pings(range(number, number + 1))

    def begin(self, rejoin: Callable[[Client], bool]) -> None:
        """Recover pservers from now on; `rejoin` sends ATTEND and REGISTER.

        It returns True if the pserver has recovered the COMPLETE of this trainer.

        Raises `ConfigError` if the pservers make no cuts, or if no backup is possible.
        """
        if self._is_replicated:
            pair_of([client.endpoint for client in self._clients], 0)
        elif not self._clients[0].makes_cuts:
            raise ConfigError(
                "a durable job needs pservers that make cuts, and these make none.",
                hint="Start them with --checkpoint-dir, or set durability = none in [job], in a "
                "PyTorch script of pt.connect().",
            )
        self._pings(range(len(self._clients)))
        for number, client in enumerate(self._clients):
            client.recovers_by(partial(self._send, number, rejoin))

    def registered(self) -> None:
        """Fail over from now on, if the job has backups: its tables exist."""
        for failover in self._failovers:
            failover.begin()

    def keep(self, method: Method, requests: Sequence[Request]) -> None:
        """Keep the pushes of one step before they are sent; may wait for a cut under way.

        The wait is short: others may need this step before they can take part in another cut.
        """
        retained = self._retained
        if not retained.wait_for_room(ROOM_S) and retained.size_bytes > MOST * retained.limit_bytes:
            raise DeadlineError(
                f"pushes that are not durable yet take {retained.size_bytes >> 20} MiB, {MOST} "
                "times as much as retained_mib allows, and no cut makes room.",
                hint="See the logs of the pservers; raise retained_mib, or make cuts more often.",
            )
        retained.add(method, requests)
        if self._is_pressed and not self._waits_for_deltas:
            self.ask_for_cut()

    @property
    def _is_pressed(self) -> bool:
        """True if half of the memory is used."""
        return 2 * self._retained.size_bytes > self._retained.limit_bytes

    def durable(self, endpoint: int, sequence: int) -> None:
        """Record a reply of pserver number `endpoint`, and what it has named."""
        if not (self._is_replicated or self._is_pressed):  # else the answers to pings matter
            self._ping_times.answered(endpoint, self._clock.now())
        if sequence:
            self._retained.durable(endpoint, sequence)

    @property
    def kept(self) -> tuple[int, int]:
        """The number of pushes kept, and their bytes."""
        return self._retained.count, self._retained.size_bytes

    def takes_part(self, number: int) -> None:
        """Record that this trainer takes part in a cut."""
        self._retained.takes_part(number)

    def gave_up(self) -> None:
        """Record that the cut under way gives no room."""
        self._retained.cut_failed()

    def completed(self, number: int) -> None:
        """Record the newest complete cut that a reply has named."""
        if number > self._retained.complete and not self._is_replicated:
            self._retained.completed(number)

    def ask_for_cut(self) -> None:
        """Ask for a cut on a thread of its own, unless one is being asked for."""
        if self._asking.acquire(blocking=False):
            start_thread(self._ask, "ask for a cut", self._crashes)

    def joined(self, newest: int) -> None:
        """Record the newest cut that was proposed before this trainer joined."""
        self._retained.newest_before = newest

    def complete(self, endpoint: int, timeout_s: float, position: str) -> None:
        """Complete at pserver number `endpoint`, and stay until all pushes are durable everywhere.

        A pserver that is killed meanwhile is sent what it has lost; the others are called all the
        time, so they stay, too. Without local cuts, and without backups, the end of the job is
        enough: no cut may follow.
        """
        client, deadline_s = self._clients[endpoint], self._clock.now() + timeout_s
        self._completed(endpoint, client.complete(timeout_s, position))
        while not (self._may_leave() or self._closed.is_set()):
            if (left_s := deadline_s - self._clock.now()) <= 0:
                log.warning("the last pushes are not durable after %.0f s", timeout_s)
                return
            if not self._waits_for_deltas:
                self.ask_for_cut()
            self._retained.wait_until_recorded(min(PING_S, left_s))
            self._completed(endpoint, client.complete(max(left_s, PING_S), position))

    def _completed(self, endpoint: int, reply: pb.Complete) -> None:
        """Record a reply to COMPLETE."""
        self._retained.has_trained = True
        self._has_ended |= reply.ended
        if reply.recorded:
            self._recorded.add(endpoint)

    def _may_leave(self) -> bool:
        """True if no pserver will ask for the pushes of this trainer again.

        A pserver that is killed when the job has ended goes on from before that, and waits for
        trainers whose end it has not met: local cuts and backups soon have it.
        """
        is_over = self._has_ended and not self._waits_for_deltas
        are_recorded = self._retained.is_recorded or len(self._recorded) == len(self._clients)
        return is_over or are_recorded

    def close(self) -> None:
        """End the thread that calls idle pservers."""
        self._closed.set()

    def _pings(self, numbers: range) -> None:
        with self._pinging:
            self._ping_times.add(numbers, self._clock.now())
            if not self._is_pinging:
                start_thread(self._ping, "pings", self._crashes)
            self._is_pinging = True

    def _ping(self) -> None:
        """Call each pserver that is idle: one that was killed is sent its pushes soon.

        A trainer that waits for another one would find out too late, and both wait for ever.
        """
        while not self._closed.wait(self._ping_times.wait_s(self._clock.now())):
            for endpoint in self._ping_times.due(self._clock.now()):
                with suppress(PsrtError):  # the training thread's own calls report it
                    self._call(endpoint, self._clients[endpoint])

    def _call(self, endpoint: int, client: Client) -> None:
        """Call a pserver; without room for pushes, ask for those kept of it to become durable."""
        asked = self._is_pressed and not self._is_replicated
        header = pb.Header(durable_to=self._retained.newest_of(endpoint) if asked else 0)
        reply = client.call(Method.ATTEND, header=header, timeout_s=PING_S)
        self.durable(endpoint, reply.header.durable_to)
        for deposed in reply.header.deposed if self._failovers else ():
            self._failovers[deposed.part].deposed(deposed.epoch)

    def _ask(self) -> None:
        try:
            reply = self._clients[0].call(Method.CHECKPOINT, timeout_s=self._call_timeout_s)
            self._retained.completed(reply.header.cut.number)
        except PsrtError as error:
            log.info("no cut was made: %s", error)
            self._retained.cut_failed()
        finally:
            self._asking.release()

    def _send(self, number: int, rejoin: Callable[[Client], bool]) -> None:
        client = self._clients[number]
        pushes, complete = ([], 0) if rejoin(client) else self._retained.of(number)
        for push in pushes:
            header = pb.Header()
            header.CopyFrom(push.header)
            client.call(
                push.method, header=header, tensors=push.tensors, timeout_s=self._call_timeout_s
            )
        cuts = pb.Cut(number=self._retained.seen_cut, complete=complete)
        client.call(Method.RESENT, header=pb.Header(cut=cuts), timeout_s=self._call_timeout_s)
        log.warning("pserver %s has %d pushes again", client.endpoint, len(pushes))
