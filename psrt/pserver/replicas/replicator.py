"""The stream of ticks from the pserver that serves a part to its backup.

A thread takes a local cut every `every_s`, if there was anything new, and sends it. The first one
has all rows, and so has each one after a failure: the backup may be another process. It is asked
every `PROBE_S`, as long as nothing is new. What the backup has confirmed is durable. Without a
backup trainers keep their pushes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from psrt.core.errors import ErrorCode, PsrtError
from psrt.core.threads import CrashReport, start_thread
from psrt.core.types import Array
from psrt.pserver.checkpoints import LocalCut
from psrt.pserver.decisions import DurablePoint
from psrt.pserver.replicas.ticks import pieces_of
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.dialing import Carrier
from psrt.rpc.methods import Method
from psrt.rpc.pairs import pair_of
from psrt.rpc.retry import RetryPolicy

log = logging.getLogger("psrt.pserver")

CALL_S = 10.0
"""Time limit of one piece."""

AGAIN_S = 0.5
"""Seconds between two attempts to reach a backup."""

PROBE_S = 1.0
"""Seconds after which an idle pserver asks whether its backup still has the copy."""

_POLICY = RetryPolicy(budget_s=0.0)


class TickSource(Protocol):
    """The part as its service serves it."""

    @property
    def incarnation(self) -> int: ...

    def take(self, is_full: bool) -> LocalCut[DurablePoint] | None:
        """Changes since the latest confirmed tick, or everything; None if there are none."""
        ...

    def confirm(self, cut: LocalCut[DurablePoint]) -> None:
        """Record that the backup has a tick."""
        ...

    def give_up(self, cut: LocalCut[DurablePoint]) -> None:
        """Record that the backup may lack a tick."""
        ...


class Replicator:
    """Sends a part in `epoch` to the other pserver of its pair; `start` it, and `close` it.

    `on_fenced(error)` is called on its thread, once, when the backup serves the part or will.
    """

    def __init__(
        self,
        source: TickSource,
        endpoints: Sequence[str],
        part: int,
        epoch: int,
        every_s: float,
        carrier: Carrier,
        on_fenced: Callable[[PsrtError], None],
    ) -> None:
        self.confirmed = 0
        self._source, self._epoch = source, epoch
        self._endpoints, self._pair = endpoints, pair_of(endpoints, part)
        self._every_s, self._carrier, self._on_fenced = every_s, carrier, on_fenced
        self._client: Client | None = None
        self._sending = threading.Lock()
        self._needs_full, self._is_lost = True, False
        self._called_s = 0.0
        self._closed = threading.Event()

    def start(self, crashes: CrashReport) -> None:
        start_thread(self._run, f"replica of part {self._pair.part}", crashes)

    def close(self) -> None:
        """Send nothing more."""
        self._closed.set()

    def send(self) -> None:
        """Take a tick and send it; raises `PsrtError` if the backup does not confirm it."""
        with self._sending:
            cut = self._source.take(self._needs_full)
            if cut is None:
                self._probe()
                return
            try:
                self._send(cut)
            except BaseException:
                self._needs_full = True
                self._source.give_up(cut)
                raise
            self._needs_full, self.confirmed = False, cut.number
            self._source.confirm(cut)

    def _probe(self) -> None:
        """Repeat the end of the newest tick now and then: another process would not know it."""
        if not self.confirmed or time.monotonic() < self._called_s + PROBE_S:
            return
        try:
            self._call(pb.Replica(tick=self.confirmed, last=True), ())
        except BaseException:
            self._needs_full = True
            raise

    def _send(self, cut: LocalCut[DurablePoint]) -> None:
        for number, piece in enumerate(pieces_of(cut)):
            replica = pb.Replica(tick=cut.number, piece=number, last=piece.is_last)
            replica.whole, replica.facts = cut.is_full, piece.facts
            self._call(replica, piece.arrays)

    def _call(self, replica: pb.Replica, arrays: Sequence[Array]) -> None:
        client = self._client = self._client or self._connected()
        replica.part, replica.epoch = self._pair.part, self._epoch
        replica.incarnation = self._source.incarnation
        replica.endpoints.extend(self._endpoints)
        header = pb.Header(replica=replica)
        reply = client.call(Method.REPLICATE, header=header, tensors=arrays, timeout_s=CALL_S)
        if reply.header.replica.whole:
            raise PsrtError("the backup has no part that these changes continue.")
        self._called_s = time.monotonic()

    def _connected(self) -> Client:
        endpoint = self._pair.backup(self._epoch)
        return Client(
            endpoint, 0, self._source.incarnation, self._carrier, pb.Hello(), retry=_POLICY
        )

    def _run(self) -> None:
        while not self._closed.wait(AGAIN_S if self._is_lost else self._every_s):
            try:
                self.send()
                self._found()
            except PsrtError as error:
                self._drop_client()
                if error.code is ErrorCode.FENCED:
                    self._on_fenced(error)
                    return
                self._failed(error)
        self._drop_client()

    def _drop_client(self) -> None:
        if self._client is not None:
            self._client.close()
        self._client = None

    def _failed(self, error: PsrtError) -> None:
        if not self._is_lost and not self._closed.is_set():
            part, backup = self._pair.part, self._pair.backup(self._epoch)
            log.warning("part %d has no backup at %s for now: %s", part, backup, error)
        self._is_lost = True

    def _found(self) -> None:
        if self._is_lost:
            part, backup = self._pair.part, self._pair.backup(self._epoch)
            log.info("part %d has a backup at %s again", part, backup)
        self._is_lost = False


def send_last(replicator: Replicator) -> None:
    """Send the last tick; a failure is logged."""
    try:
        replicator.send()
    except PsrtError as error:
        log.info("the backup has no last tick: %s", error)
