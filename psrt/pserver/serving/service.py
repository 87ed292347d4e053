"""The rpc handler of a pserver: one small function per method, over tables and machine.

Handler threads of the carriers call `handle`. Admission comes last: a call is checked against the
tables before the machine hears of it, so what the machine admitted can be applied.
"""

from __future__ import annotations

import json
import logging
import math
import os
import random
from collections.abc import Callable, Sequence
from typing import Any

from psrt.core.clock import Clock, MonotonicClock, hours_since_1970
from psrt.core.errors import ErrorCode, PsrtError, TableError, WireError
from psrt.core.specs import Async, Geo, HalfAsync, Ssp, Sync, TableSpec, from_json
from psrt.core.threads import CrashReport
from psrt.pserver.decisions import JobIdentity, Meeting, PserverState, WaitingCall, read_spec
from psrt.pserver.serving.effect_runner import EffectRunner, PendingCall
from psrt.pserver.serving.id_lists import IdLists
from psrt.pserver.serving.parts import RequestParts, parse, section_of
from psrt.pserver.serving.presence import Presence
from psrt.pserver.serving.updates import read
from psrt.pserver.tables import Meters, SlabPreallocator, SpareThreads, Tables, Upkeep
from psrt.rpc import pb
from psrt.rpc.methods import Method
from psrt.rpc.serving import Later, Peer
from psrt.rpc.wire import Message

log = logging.getLogger("psrt.pserver")

_PAGE_BYTES = 64 << 20  # of one EXPORT reply, however many rows were asked for
_CONNECTED = ("stream-unix", "stream-tcp")  # the peer of these lives as long as its connection
_ANSWER_BEFORE = 0.95  # the part of a caller's patience that a call may wait: the reply must travel


class PserverService:
    """Lives as long as the process: `start`, many `handle`, `stop`.

    `on_end(error)` is called once, on any thread: when all trainers have completed (None), when the
    job was aborted, or when its last trainers left without completing. A job must have `trainers`
    trainers, 0 = as many as it says. Large requests use up to `spare_threads` threads beside the
    one that handles them.
    """

    def __init__(
        self,
        *,
        stripes: int,
        wait_timeout_s: float,
        trainers: int = 0,
        clock: Clock | None = None,
        on_end: Callable[[PsrtError | None], None] = lambda error: None,
        crashes: CrashReport | None = None,
        hours: Callable[[], int] = hours_since_1970,
        spare_threads: int = 0,
    ) -> None:
        self._crashes = crashes or CrashReport()
        self._room = SlabPreallocator(self._crashes)
        self._spare = SpareThreads(spare_threads, self._crashes)
        self.tables = Tables(stripes, hours, self._room, self._spare)
        self.meters = Meters()
        self._upkeep = Upkeep(self.tables.all_sparse, self.meters, hours, self._job_time)
        self._id_lists = IdLists()
        self._clock = clock or MonotonicClock()
        self._presence = Presence()
        machine = PserverState(wait_timeout_s, trainers, self._presence.is_gone)
        self._shell = EffectRunner(machine, self.meters, self._clock, on_end)
        self._incarnation = random.getrandbits(63) | 1
        self._methods: dict[int, Callable[[Message], Message | Later]] = {
            Method.HELLO: self._hello,
            Method.REGISTER: self._register,
            Method.PULL: self._pull,
            Method.PUSH: self._push,
            Method.EXCHANGE: self._exchange,
            Method.MEET: self._meet,
            Method.COMPLETE: self._complete,
            Method.EXPORT: self._export,
            Method.STATUS: self._status,
            Method.SHRINK: self._shrink,
        }

    def expect(self, job: JobIdentity, tables: Sequence[TableSpec]) -> None:
        """Belong to `job` and hold `tables` before any trainer has come."""
        self._shell.ask(lambda machine, now: machine.expect(job))
        self._hold(tables, job)

    def start(self) -> None:
        """Begin to watch deadlines and limits of tables."""
        self._shell.start(self._crashes)
        self._upkeep.start(self._crashes)

    def stop(self) -> None:
        """End all waits."""
        self._upkeep.stop()
        self._room.stop()
        self._shell.stop()
        self._spare.close()

    def expire(self) -> None:
        """End the waits that are over by the service's clock."""
        self._shell.expire()

    def handle(self, message: Message, peer: Peer) -> Message | Later:
        """One call; raises `PsrtError` for whatever the caller did wrong."""
        self.meters.calls.add()
        try:
            method = self._methods.get(message.header.method)
            if method is None:
                raise WireError(
                    f"this pserver has no method {message.header.method}.",
                    code=ErrorCode.WIRE_UNKNOWN_METHOD,
                )
            reply = method(message)
            if not self._presence.knows(peer):
                self._note(message.header, peer)
            return reply
        except PsrtError as error:
            self.meters.refused.add()
            log.debug("refused method %d of %s: %s", message.header.method, peer, error)
            raise
        except MemoryError as error:  # while a request was read or its reply made
            raise _no_memory(message.header, error) from error

    def status(self) -> dict[str, Any]:
        """What STATUS tells, as plain data."""
        return {
            "pid": os.getpid(),
            **self._shell.ask(lambda machine, now: machine.describe(now)),
            "tables": self.tables.describe(),
            "counters": self.meters.registry.snapshot(),
        }

    def _job_time(self) -> int:
        """Rounds in Sync, mini-batches of all trainers else; every pserver hears of each."""
        return self._shell.ask(lambda machine, now: max(machine.open_round, machine.global_step))

    def _note(self, header: pb.Header, peer: Peer) -> None:
        """Anybody may ask for STATUS, whatever trainer he says he is."""
        if peer.carrier in _CONNECTED and header.method != Method.STATUS:
            self._presence.note(*_caller(header), peer)

    # --- methods -----------------------------------------------------------------------------

    def _hello(self, message: Message) -> Message:
        header = message.header
        reply = pb.Header(hello_reply=pb.HelloReply(incarnation=self._incarnation, software="psrt"))
        if header.hello.plan_hash:
            job = _job(header.hello)
            is_new = self._shell.ask(lambda machine, now: machine.is_new(*_caller(header)))
            self._shell.decide(lambda machine, now: machine.hello(*_caller(header), job, now))
            self._shell.ask(lambda machine, now: machine.raise_if_aborted())
            reply.round = self._shell.ask(lambda machine, now: machine.open_round)
            if is_new:
                log.info("trainer %d of %d joined", header.trainer, job.trainers)
        return Message(reply)

    def _register(self, message: Message) -> Message:
        header = message.header
        specs = [read_spec(text) for text in header.register.specs]
        job = self._shell.ask(lambda machine, now: machine.heard(*_caller(header), now))
        self._hold(specs, job)
        return Message(pb.Header())

    def _hold(self, specs: Sequence[TableSpec], job: JobIdentity) -> None:
        mode = job.mode
        created = self.tables.register(
            specs,
            mode.dc_asgd if isinstance(mode, Async) else 0.0,
            logs_changes=isinstance(mode, Geo),
        )
        if created:
            log.info("holds %d more tables: %s", len(created), ", ".join(created[:8]))
            self._upkeep.tables_came()

    def _pull(self, message: Message) -> Message:
        header, parts = message.header, self._parts(message)
        if parts.pushes:
            raise WireError(
                "a PULL brought gradients; they were not applied.",
                hint="Gradients travel in PUSH or EXCHANGE.",
            )
        self._shell.ask(
            lambda machine, now: machine.reads(*_caller(header), now, parts.acknowledges)
        )
        return self._read(parts, header.trainer, pb.Header())

    def _push(self, message: Message) -> Message | Later:
        header = message.header
        waiting = PendingCall(self._parts(message))
        call = WaitingCall(*_caller(header), _sequence(header), math.inf, content=waiting)
        self._shell.decide(lambda machine, now: machine.push(call, header.step, now))
        return waiting.reply(lambda: self._after_push(waiting, header.trainer))

    def _after_push(self, waiting: PendingCall, trainer: int) -> Message:
        reply = pb.Header(step=self._shell.ask(lambda machine, now: machine.global_step))
        return self._read(waiting.parts, trainer, reply)

    def _exchange(self, message: Message) -> Message | Later:
        header = message.header
        waiting = PendingCall(self._parts(message), header.step)
        started = self._clock.now()
        call = WaitingCall(
            *(*_caller(header), _sequence(header), _deadline(header, started)),
            round=header.round or None,
            content=waiting,
            section=section_of(waiting.parts),
        )
        self._shell.decide(lambda machine, now: machine.exchange(call, now))
        return waiting.reply(lambda: self._after_round(waiting, header.trainer, started))

    def _after_round(self, waiting: PendingCall, trainer: int, started: float) -> Message:
        self.meters.waited.add(self._clock.now() - started)
        return self._read(waiting.parts, trainer, pb.Header())

    def _meet(self, message: Message) -> Message | Later:
        header, waiting, started = message.header, PendingCall(), self._clock.now()
        asked = header.meet
        call = WaitingCall(*_caller(header), 0, _deadline(header, started), content=waiting)
        meeting = Meeting(asked.clock, asked.reached, asked.awaited, asked.note)
        self._shell.decide(lambda machine, now: machine.meet(call, meeting, now))
        return waiting.reply(lambda: self._after_meet(header.trainer, meeting, started))

    def _after_meet(self, trainer: int, met: Meeting, started: float) -> Message:
        self.meters.met.add(self._clock.now() - started)
        slowest, notes = self._shell.ask(
            lambda machine, now: (
                machine.clocks.slowest_but(trainer, met.clock),
                machine.clocks.notes(met.clock, met.awaited),
            )
        )
        return Message(pb.Header(meet_reply=pb.MeetReply(slowest=slowest, notes=notes)))

    def _complete(self, message: Message) -> Message:
        header = message.header
        self._shell.decide(lambda machine, now: machine.complete(*_caller(header), now))
        self.tables.release(header.trainer)
        self._id_lists.release(header.trainer)
        log.info("trainer %d completed", header.trainer)
        return Message(pb.Header())

    def _export(self, message: Message) -> Message:
        asked = message.header.export
        table = self.tables.sparse(asked.table)
        if asked.max_rows == 0:
            raise WireError(f"EXPORT of table {asked.table!r} asks for pages of 0 rows.")
        limit = max(1, _PAGE_BYTES // (8 + 4 * table.spec.width))
        ids, rows, cursor = table.export(asked.cursor, min(asked.max_rows, limit))
        return Message(pb.Header(export_reply=pb.ExportReply(next_cursor=cursor)), [ids, rows])

    def _shrink(self, message: Message) -> Message:
        header, asked = message.header, message.header.shrink
        self._shell.ask(lambda machine, now: machine.heard(*_caller(header), now))
        names = [self.tables.sparse(name).spec.name for name in asked.tables]
        dropped = self._upkeep.shrink(names, asked.number, asked.dry_run, header.trainer)
        reply = pb.ShrinkReply(
            tables=[
                pb.Dropped(table=name, rows=found.rows, bytes=found.bytes)
                for name, found in dropped.items()
            ]
        )
        return Message(pb.Header(shrink_reply=reply))

    def _status(self, message: Message) -> Message:
        return Message(pb.Header(status_json=json.dumps(self.status())))

    def _parts(self, message: Message) -> RequestParts:
        return parse(self.tables, self._id_lists, message)

    def _read(self, parts: RequestParts, trainer: int, reply: pb.Header) -> Message:
        return read(parts, trainer, reply, self._id_lists, self.meters)


def _caller(header: pb.Header) -> tuple[int, int]:
    """Trainer and incarnation: every call of a trainer carries both."""
    return header.trainer, header.push_key.incarnation


def _deadline(header: pb.Header, started: float) -> float:
    """When a call that came in at `started` must have been answered."""
    patience_s = header.timeout_ms / 1000 if header.timeout_ms else math.inf
    return started + _ANSWER_BEFORE * patience_s


def _sequence(header: pb.Header) -> int:
    sequence: int = header.push_key.sequence
    if sequence == 0:
        raise WireError(
            f"trainer {header.trainer} sent gradients without a push key; they were refused.",
            hint="push_key.sequence counts 1, 2, 3 … per trainer process and pserver.",
        )
    return sequence


def _no_memory(header: pb.Header, error: MemoryError) -> TableError:
    return TableError(
        f"method {header.method} of trainer {header.trainer} was given up: no memory ({error!r}).",
        code=ErrorCode.TABLE_FULL,
        hint="Give the job more pservers, or the host of this one more memory.",
    )


def _job(hello: pb.Hello) -> JobIdentity:
    mode = from_json(hello.mode)
    if not isinstance(mode, Sync | Async | Ssp | HalfAsync | Geo):
        raise WireError(f"HELLO names no communication mode: {hello.mode!r}.")
    return JobIdentity(hello.job_id, hello.plan_hash, hello.trainers, mode)
