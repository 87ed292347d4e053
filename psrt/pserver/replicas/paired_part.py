"""A part that this process keeps a copy of, or serves in place of the other pserver of its pair."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any, Protocol

from psrt.core.errors import ErrorCode, JobError, PsrtError, UnavailableError
from psrt.core.threads import CrashReport
from psrt.pserver.checkpoints import SavedCut
from psrt.pserver.decisions import Member, has_ended, trainers_using
from psrt.pserver.replicas.copy_state import Answer, CopyState, Piece
from psrt.pserver.replicas.kept_copy import KeptCopy
from psrt.pserver.replicas.replicator import Replicator, send_last
from psrt.pserver.serving import PserverService
from psrt.rpc import pb
from psrt.rpc.dialing import Carrier
from psrt.rpc.wire import Message

log = logging.getLogger("psrt.pserver")

ALONE_S = 60.0
"""Seconds in which a pserver that lives sends copies to one that has lost its part, and more."""


class HostProcess(Protocol):
    """The process of a `PairedPart`, as the part uses it; any thread calls this."""

    every_s: float
    carrier: Carrier
    crashes: CrashReport

    def make(self, part: int, incarnation: int) -> PserverService:
        """A service for the tables of a part, not started."""
        ...

    def members(self) -> Sequence[Member]:
        """The members of the job, as the part whose home this process is has them."""
        ...

    def cut(self, number: int) -> SavedCut | None:
        """The complete cut of a number, 0 = none; None, and a warning, if it cannot be read."""
        ...

    def services(self) -> list[PserverService]:
        """The services of all parts that this process serves."""
        ...

    def changed(self) -> None:
        """A part is served, given up, or has ended."""
        ...


class PairedPart:
    """One part; any thread calls this.

    `service` serves it, None = another process does. `has_ended` is True for a copy of a part
    whose trainers have all completed.
    """

    def __init__(self, part: int, host: HostProcess) -> None:
        self.service: PserverService | None = None
        self.has_ended = False
        self._part, self._host = part, host
        self._state = CopyState()
        self._copy = KeptCopy(lambda: host.make(part, self._state.incarnation))
        self._replicator: Replicator | None = None
        self._endpoints: Sequence[str] = ()
        self._lock = threading.Lock()

    @property
    def epoch(self) -> int:
        return self._state.epoch

    @property
    def is_over(self) -> bool:
        """True for a copy of a part whose trainers will not ask for anything again."""
        return self._copy.is_over

    @property
    def failure(self) -> PsrtError | None:
        """The error that has ended the job at the pserver that serves the part."""
        return self._copy.failure

    @property
    def is_copy(self) -> bool:
        """True if this process has the tables of the part, served or not."""
        return self._state.is_copy

    @property
    def deposed_epoch(self) -> int | None:
        """The newest epoch whose pserver some trainers have deposed, as this process serves the
        part instead, or will; None if there is none."""
        if self.service is not None:
            return self.epoch - 1
        return self.epoch if self._state.deposed_by else None

    def is_copy_of_another(self, incarnation: int) -> bool:
        """Return True if this process has tables of the part that are not of this incarnation."""
        return self._state.is_copy and self._state.incarnation != incarnation

    def describe(self) -> dict[str, Any]:
        """Facts for STATUS."""
        tick = self._state.tick if self.service is None else self._confirmed()
        role = "serves" if self.service is not None else "copy" if self._state.is_copy else "empty"
        return {"part": self._part, "epoch": self.epoch, "role": role, "tick": tick}

    # --- calls -----------------------------------------------------------------------------------

    def replicate(self, message: Message) -> Message:
        """Take a piece of a tick; raises `UnavailableError` (FENCED) from a former pserver."""
        sent = message.header.replica
        piece = Piece(sent.epoch, sent.incarnation, sent.tick, sent.piece, sent.last, sent.whole)
        with self._lock:
            answer = self._state.offered(piece)
            if answer is Answer.FENCED:
                raise not_served(self._part, self.epoch)
            if not self._state.serves:
                self._give_up_service()
            self._endpoints = tuple(sent.endpoints)
            if answer in (Answer.KEEP, Answer.APPLY):
                self._keep(piece, message)
            begins_anew = answer is Answer.BEGIN_ANEW
            return _reply(pb.Replica(epoch=self.epoch, tick=self._state.tick, whole=begins_anew))

    def depose(self, trainer: int, epoch: int, incarnation: int) -> Message:
        """Record that a trainer has deposed the other pserver; the reply names who serves.

        Raises the error that has ended the job at this process.
        """
        with self._lock:
            elsewhere = self._host.members()
            if _is_current(trainer, incarnation, elsewhere):
                awaited = trainers_using(self._copy.state, elsewhere) if self._copy.state else ()
                if self._state.deposed(trainer, epoch, awaited):
                    self._serve(elsewhere)
            state = self._state
            reply = pb.Replica(epoch=self.epoch, serves=state.serves, is_copy=state.is_copy)
            missing = () if state.serves else self._missing(elsewhere)
            for each in self._host.services():
                each.failover_waits(self._part, missing)
            if not state.serves:
                reply.waits_for = self._reason(missing)
            return _reply(reply)

    def fenced(self, error: PsrtError) -> None:
        """End the service: the other pserver of the pair serves the part, or will."""
        with self._lock:
            if self._state.serves:
                log.warning("part %d is served by another pserver: %s", self._part, error)
                self._give_up_service()

    def finish(self) -> None:
        """Send what a backup lacks, as far as it can be reached."""
        if self._replicator is not None:
            send_last(self._replicator)

    def stop(self) -> None:
        with self._lock:
            self._give_up_service()
            self._copy.close()

    # --- inside ----------------------------------------------------------------------------------

    def _keep(self, piece: Piece, message: Message) -> None:
        if piece.number == 0:
            self._copy.begin(piece.is_whole)
        self._copy.add(message.header.replica.facts, message.tensors, piece.is_last)
        if piece.is_last:
            if piece.is_whole:
                log.info("keeps a copy of part %d, epoch %d", self._part, piece.epoch)
            self._state.applied(piece.tick)
            self.has_ended = has_ended(self._copy.state)
            if self.has_ended or self.failure is not None:
                self._host.changed()

    def _serve(self, elsewhere: Sequence[Member]) -> None:
        state, service = self._copy.state, self._copy.take_out()
        if (cut := self._host.cut(self._copy.began_at)) is not None:
            service.began_with(cut)
        service.take_over(state, elsewhere)
        self._state.serve()
        self.service = service
        service.start()
        self._replicator = Replicator(
            *(service.source(), self._endpoints, self._part, self.epoch),
            *(self._host.every_s, self._host.carrier, self.fenced),
        )
        self._replicator.start(self._host.crashes)
        home = self._endpoints[self._part]
        log.warning("serves part %d of %s from now on, epoch %d", self._part, home, self.epoch)
        self._host.changed()

    def _give_up_service(self) -> None:
        if self._replicator is not None:
            self._replicator.close()
        if self.service is not None:
            self.service.stop()
        self.service = self._replicator = None

    def _missing(self, elsewhere: Sequence[Member]) -> Sequence[int]:
        """The trainers that have not deposed the other pserver; none without a copy."""
        if not self._state.is_copy:
            return ()
        return sorted(set(trainers_using(self._copy.state, elsewhere)) - self._state.deposed_by)

    def _reason(self, missing: Sequence[int]) -> str:
        if not self._state.is_copy:
            return "it has no copy of this part"
        if not missing:
            return "it is asked by a process that another one has replaced, or about an old epoch"
        return f"trainers {', '.join(map(str, missing))} still use the former pserver"

    def _confirmed(self) -> int:
        return 0 if self._replicator is None else self._replicator.confirmed


def not_served(part: int, epoch: int) -> UnavailableError:
    """The error of a call to a pserver that does not serve a part, or will soon not."""
    return UnavailableError(
        f"part {part} is not served here: its trainers have deposed this pserver, or another one "
        f"serves it (epoch {epoch}).",
        code=ErrorCode.FENCED,
        hint="Trainers go on with the other pserver of the part by themselves.",
    )


def left_alone(part: int) -> JobError:
    """The error of a process that neither serves its part nor is sent a copy of any."""
    return JobError(
        f"this pserver no longer serves part {part}, and no other has sent it a copy of a part for "
        f"{ALONE_S:.0f} s: those of its job have ended. It was ended, too.",
        hint="See the logs of the other pservers and of the trainers for the reason.",
    )


def _is_current(trainer: int, incarnation: int, members: Sequence[Member]) -> bool:
    """False for a process that another one has replaced."""
    return all(each.incarnation in (0, incarnation) for each in members if each.trainer == trainer)


def _reply(replica: pb.Replica) -> Message:
    return Message(pb.Header(replica=replica))
