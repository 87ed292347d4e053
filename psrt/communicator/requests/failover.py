"""A trainer's part in failovers: depose a pserver that has ended, and go on with its backup.

Calls of any thread report failures. The one that finds a pserver deposed asks the backup to serve
the part, again and again: it does once every trainer has asked. Then the client is moved there, and
its next call sends what the backup lacks (`recovery`). A backup without a copy, as in the first
moments of a job, records no deposal: the trainer goes on with its pserver, if that lives.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from functools import partial

from psrt.core.clock import Clock, MonotonicClock
from psrt.core.errors import DeadlineError, ErrorCode, JobError, PsrtError
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.deposal import Deposal
from psrt.rpc.methods import Method
from psrt.rpc.pairs import Pair, pair_of
from psrt.rpc.retry import RetryPolicy

log = logging.getLogger("psrt.communicator")

ASK_S = 0.25
"""Time in which one failed call asks a backup to serve."""

POLL_S = 0.02
"""Seconds between two requests."""

_LOST = (ErrorCode.UNAVAILABLE, ErrorCode.STOPPING, ErrorCode.DEADLINE)
_LATE = (DeadlineError, TimeoutError, BlockingIOError)
_POLICY = RetryPolicy(max_s=0.05, budget_s=0.2)


class PartFailover:
    """The reaction of `client` to the end of the pserver that serves its part.

    Before `begin`, only a pserver that says so itself is deposed: others may not be up yet.
    """

    def __init__(self, client: Client, pair: Pair, clock: Clock | None = None) -> None:
        self._client, self._pair = client, pair
        self._deposal = Deposal()
        self._clock = clock or MonotonicClock()
        self._guard = threading.Lock()  # of the deposal
        self._asking = threading.Lock()
        self._is_reported = self.has_begun = False
        self._waits_for = ""

    @property
    def is_deposed(self) -> bool:
        return self._deposal.is_deposed

    def begin(self) -> None:
        """Depose a pserver that does not answer, from now on: its tables exist."""
        self._deposal.answered()
        self.has_begun = True

    def answered(self) -> None:
        """Record a reply."""
        self._deposal.answered()

    def failed(self, error: PsrtError, epoch: int) -> bool:
        """React to a call without a reply from the pserver of `epoch`; True if the client was moved
        to another one, perhaps by another thread before.

        Raises `JobError` if the pserver was started again without the part, and there is no copy,
        or the job has ended at the backup.
        """
        with self._guard:
            if epoch != self._deposal.epoch:
                return True
            if error.code is ErrorCode.FENCED:
                self._deposal.fenced(epoch)
            elif error.code in _LOST and self.has_begun:
                self._deposal.failed(self._clock.now(), _is_closed(error))
        if not self.is_deposed:
            return False
        is_moved = self._ask(epoch)
        is_withdrawn = not is_moved and not self._is_pending(epoch)
        if is_withdrawn and isinstance(error.__cause__, JobError):
            raise error.__cause__
        return is_moved

    def deposed(self, epoch: int) -> None:
        """Depose the pserver of `epoch`, because another trainer has."""
        with self._guard:
            self._deposal.fenced(epoch)

    def _ask(self, epoch: int) -> bool:
        """Ask the backup for a while; True if the client was moved, by any thread."""
        if not self._asking.acquire(timeout=ASK_S):
            return False
        try:
            ends_s = self._clock.now() + ASK_S
            while self._is_pending(epoch) and self._clock.now() < ends_s:
                self._ask_once(epoch)
                if self._is_pending(epoch):
                    time.sleep(POLL_S)
            return self._deposal.epoch != epoch
        finally:
            self._asking.release()

    def _is_pending(self, epoch: int) -> bool:
        return self._deposal.epoch == epoch and self.is_deposed

    def _ask_once(self, epoch: int) -> None:
        backup = self._pair.backup(epoch)
        self._report(epoch, backup)
        header = pb.Header(replica=pb.Replica(part=self._pair.part, epoch=epoch))
        mine = self._client
        asking = Client(
            *(backup, mine.trainer, mine.incarnation, mine.carrier, pb.Hello()), retry=_POLICY
        )
        try:
            reply = asking.call(Method.DEPOSE, header=header, timeout_s=ASK_S).header.replica
        except JobError:
            raise  # the job has ended there, perhaps for a trainer that was awaited
        except PsrtError as error:
            log.debug("%s: %s", backup, error)
            return
        finally:
            asking.close()
        if reply.waits_for != self._waits_for:
            self._waits_for = reply.waits_for
            log.warning("%s does not serve part %d: %s", backup, self._pair.part, reply.waits_for)
        if reply.epoch > epoch:
            self._move(reply.epoch)
        elif not reply.is_copy:
            self._withdraw(epoch)

    def _withdraw(self, epoch: int) -> None:
        with self._guard:
            if self._deposal.epoch == epoch:
                self._deposal.withdrawn()

    def _move(self, epoch: int) -> None:
        with self._guard:
            if not self._deposal.served(epoch):
                return
            place = self._pair.serving(epoch)
            self._client.move(place)
        self._is_reported = False
        log.warning("part %d is served by %s, epoch %d", self._pair.part, place.endpoint, epoch)

    def _report(self, epoch: int, backup: str) -> None:
        if not self._is_reported:
            serving = self._pair.serving(epoch).endpoint
            log.warning("pserver %s is gone; asks %s to serve its part", serving, backup)
        self._is_reported = True


def failovers_of(clients: Sequence[Client]) -> list[PartFailover]:
    """Let each client fail over; they are in the order of the plan, and there are several."""
    endpoints = [client.endpoint for client in clients]
    pairs = map(partial(pair_of, endpoints), range(len(clients)))
    found = [PartFailover(*each) for each in zip(clients, pairs, strict=True)]
    for client, failover in zip(clients, found, strict=True):
        client.route.failover = failover
    return found


def _is_closed(error: PsrtError) -> bool:
    """True if a connection was refused or closed; False if nothing answered in time."""
    return not isinstance(error, _LATE) and not isinstance(error.__cause__, _LATE)
