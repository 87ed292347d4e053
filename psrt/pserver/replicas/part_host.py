"""The parts of one process: the one that it is the home of, and those that it backs up.

Calls name a part by a field of their header; without one they go to the home part. That is served
in epoch 0 by `own`; later the other pserver of the pair serves it, or this one does under its name.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from psrt.core.errors import PsrtError
from psrt.core.threads import CrashReport
from psrt.pserver.checkpoints import SavedCut, Settings, find_cut
from psrt.pserver.decisions import BackupAwaitedError, Member
from psrt.pserver.replicas.home_part import HomePart
from psrt.pserver.replicas.once_later import OnceLater
from psrt.pserver.replicas.paired_part import ALONE_S, PairedPart, left_alone, not_served
from psrt.pserver.replicas.process_end import Ends, Lingers, end_of
from psrt.pserver.serving import PserverService
from psrt.rpc import pb
from psrt.rpc.dialing import Carrier
from psrt.rpc.error_text import restarted
from psrt.rpc.methods import Method
from psrt.rpc.pairs import pair_of, parts_paired_with
from psrt.rpc.serving import Later, Peer
from psrt.rpc.wire import Message

log = logging.getLogger("psrt.pserver")

LINGER_S = 20.0
"""Time in which trainers may still depose a pserver that ends before it has answered all of them;
one that ends in order sends that to its backup, which then ends at once."""


class PartHost:
    """Dispatches calls; `start`, many `handle`, `finish`, `stop`.

    `make` makes a service; it gets named arguments of `PserverService`.
    `on_end(error)` is called when all parts that this process serves have ended, or one by an
    error; if it serves none, when those that it backs up have.
    """

    def __init__(
        self,
        make: Callable[..., PserverService],
        on_end: Callable[[PsrtError | None], None],
        every_s: float,
        crashes: CrashReport,
        cuts: Settings | None = None,
        carrier: Carrier = "stream",
        **of_home: Any,
    ) -> None:
        self.every_s, self.crashes, self.carrier = every_s, crashes, carrier
        self._make, self._on_end = make, on_end
        self._cuts = cuts
        self._home = HomePart(
            partial(make, cuts=cuts, **of_home),
            *(every_s, carrier, crashes, self._home_left, self._ended_one),
        )
        self.own = self._home.service
        self._parts: dict[int, PairedPart] = {}
        self._paired: set[int] = set()  # the parts of this process, once one has been sent
        self._ended: set[int] = set()  # parts served here for another that have ended
        self._lock = threading.Lock()
        self._linger = OnceLater("end of copies", LINGER_S, self._end_copies, crashes)
        self._alone = OnceLater("end without copies", ALONE_S, self._end_alone, crashes)

    # --- the process -----------------------------------------------------------------------------

    def start(self) -> None:
        self.own.start()

    def before_end(self, is_hurried: Callable[[], bool]) -> None:
        """Make a cut while trainers still run, if the home part is served here."""
        if not self._home.is_fenced:
            self.own.moments.before_end(is_hurried)

    def finish(self, is_hurried: Callable[[], bool]) -> None:
        """Send last ticks to backups, and complete a cut under way."""
        self._home.finish()
        for part in self._all():
            part.finish()
        self.own.moments.finish(is_hurried)

    def stop(self) -> None:
        """End all parts."""
        self._linger.stop()
        self._alone.stop()
        self._home.close()
        for part in self._all():
            part.stop()
        self.own.stop()

    # --- calls -----------------------------------------------------------------------------------

    def handle(self, message: Message, peer: Peer) -> Message | Later:
        """Handle one call of any part; raises `PsrtError` for an error of the caller."""
        header = message.header
        if header.method == Method.REPLICATE:
            return self._replicate(message)
        if header.method == Method.DEPOSE:
            asked = header.replica
            incarnation = header.push_key.incarnation
            return self._part(asked.part).depose(header.trainer, asked.epoch, incarnation)
        if header.part:
            return self._served(header.part - 1).handle(message, peer)
        if self._home.is_fenced and not _is_of_no_part(header):
            raise not_served(self._home.number, 0)
        try:
            reply = self.own.handle(message, peer)
        except BackupAwaitedError as error:
            if self._lacks_copies(header.register, error.endpoints):
                raise restarted("that it found there") from error
            raise
        if self._parts and isinstance(reply, Message):
            self._add_parts(header.method, reply)
        return reply

    def _replicate(self, message: Message) -> Message:
        replica = message.header.replica
        if not self._paired:
            mine = pair_of(replica.endpoints, replica.part).backup(replica.epoch)
            self._paired = parts_paired_with(mine, replica.endpoints)
        if replica.epoch % 2:  # the other pserver serves our home part
            self._home.is_elsewhere(replica.part)
        return self._part(replica.part).replicate(message)

    def _served(self, part: int) -> PserverService:
        found = self._parts.get(part)
        service = None if found is None else found.service
        if service is None:
            raise not_served(part, 0 if found is None else found.epoch)
        return service

    def _add_parts(self, method: int, reply: Message) -> None:
        """Name deposed parts to a trainer that attends, and all parts in STATUS."""
        if method == Method.ATTEND:
            for number, part in list(self._parts.items()):
                if (epoch := part.deposed_epoch) is not None:
                    reply.header.deposed.add(part=number, epoch=epoch)
        elif method == Method.STATUS:
            status = json.loads(reply.header.status_json)
            reply.header.status_json = json.dumps(status | {"parts": self.describe()})

    def _lacks_copies(self, register: pb.Register, again: Sequence[str]) -> bool:
        """True if a pserver of `again` is backed up here, and no copy is from before its start."""
        endpoints = [each.endpoint for each in register.pservers]
        mine = endpoints[self._home.number]
        for part, each in enumerate(register.pservers):
            if each.endpoint in again and pair_of(endpoints, part).other == mine:
                return not self._part(part).is_copy_of_another(each.incarnation)
        return False

    # --- for parts -------------------------------------------------------------------------------

    def make(self, part: int, incarnation: int) -> PserverService:
        """A service for the tables of a part, not started.

        That of part 0 makes no cuts: other pservers call the coordinator at its home.
        """
        return self._make(
            incarnation=incarnation,
            on_end=lambda error: self._part_ended(part, error),
            cuts=self._cuts if part else None,
        )

    def members(self) -> Sequence[Member]:
        """The members of the job, as the home part has them."""
        return () if self._home.is_fenced else self.own.members()

    def cut(self, number: int) -> SavedCut | None:
        """The complete cut of a number, 0 = none; None, and a warning, if it cannot be read."""
        if not number or self._cuts is None:
            return None
        try:
            return find_cut(self._cuts.directory, str(number))
        except PsrtError as error:
            log.warning("trainers that have not joined yet begin anew: %s", error)
            return None

    def changed(self) -> None:
        """Report the end of the process if nothing is left to serve or to back up."""
        served_run = [number not in self._ended for number in self.served()]
        copies = [part for part in self._all() if part.service is None]
        match end_of(self._home.state, served_run, copies, self._paired <= self._parts.keys()):
            case Ends(error):
                self._on_end(error)
            case Lingers():
                self._linger.begin()

    def _end_copies(self) -> None:
        """Report the end, unless a pserver died meanwhile and this one serves its part."""
        if not self.served():
            self._on_end(None)

    def _end_alone(self) -> None:
        """Report the end of a process that has lost its part, and whose copies nobody serves."""
        if not any(part.is_copy for part in self._all()):
            self._on_end(left_alone(self._home.number))

    def served(self) -> dict[int, tuple[int, PserverService]]:
        """Epoch and service of each part that this process serves for another, by number."""
        parts = self._parts.items()
        return {n: (part.epoch, part.service) for n, part in parts if part.service is not None}

    def services(self) -> list[PserverService]:
        """The services of all parts that this process serves, the home part first."""
        own = [] if self._home.is_fenced else [self.own]
        return [*own, *(service for _, service in self.served().values())]

    def status(self) -> dict[str, Any]:
        """The content of STATUS as plain data."""
        parts = {"parts": self.describe()} if self._parts else {}
        return self.own.status() | parts

    def describe(self) -> list[dict[str, Any]]:
        """Facts about all paired parts, for STATUS."""
        return [part.describe() for part in self._all()]

    # --- inside ----------------------------------------------------------------------------------

    def _home_left(self) -> None:
        """See what is left; copies may have had their end before, or never come."""
        self.changed()
        self._alone.begin()

    def _part_ended(self, part: int, error: PsrtError | None) -> None:
        if error is None:
            self._ended.add(part)
        self._ended_one(error)

    def _ended_one(self, error: PsrtError | None) -> None:
        """Report the error of a part that ends the process, or see whether it is the last one."""
        if error is not None:
            self._on_end(error)
        else:
            self.changed()

    def _part(self, number: int) -> PairedPart:
        with self._lock:
            return self._parts.setdefault(number, PairedPart(number, self))

    def _all(self) -> list[PairedPart]:
        return list(self._parts.values())


def _is_of_no_part(header: pb.Header) -> bool:
    """True for a call that only asks about the process, or for its endpoints."""
    asks_endpoints = header.method == Method.HELLO and not header.hello.plan_hash
    return asks_endpoints or header.method == Method.STATUS
