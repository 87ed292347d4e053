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
from collections.abc import Callable
from typing import Any

from psrt.core.clock import Clock, MonotonicClock
from psrt.core.errors import ErrorCode, PsrtError, WireError
from psrt.core.specs import Async, Geo, HalfAsync, Sync, from_json
from psrt.core.threads import CrashReport
from psrt.pserver.machine import Job, Machine
from psrt.pserver.meters import Meters
from psrt.pserver.parts import parse
from psrt.pserver.rounds import Call
from psrt.pserver.shell import Shell, Waiting
from psrt.pserver.spec_rules import read_spec
from psrt.pserver.tables import Tables
from psrt.pserver.updates import apply_now, read
from psrt.rpc import pb
from psrt.rpc.frames import Message
from psrt.rpc.methods import Method
from psrt.rpc.serving import Later, Peer

log = logging.getLogger("psrt.pserver")

_PAGE_BYTES = 64 << 20  # of one EXPORT reply, however many rows were asked for
_ANSWER_BEFORE = 0.95  # the part of a caller's patience that a call may wait: the reply must travel


class PserverService:
    """Lives as long as the process: `start`, many `handle`, `stop`.

    `on_end(error)` is called once, on any thread, when all trainers have completed (None), or when
    the job was aborted.
    """

    def __init__(
        self,
        *,
        stripes: int,
        wait_timeout_s: float,
        clock: Clock | None = None,
        on_end: Callable[[PsrtError | None], None] = lambda error: None,
        crashes: CrashReport | None = None,
    ) -> None:
        self.tables = Tables(stripes)
        self.meters = Meters()
        self._clock = clock or MonotonicClock()
        self._shell = Shell(Machine(wait_timeout_s), self.meters, self._clock, on_end)
        self._crashes = crashes or CrashReport()
        self._incarnation = random.getrandbits(63) | 1
        self._methods: dict[int, Callable[[Message], Message | Later]] = {
            Method.HELLO: self._hello,
            Method.REGISTER: self._register,
            Method.PULL: self._pull,
            Method.PUSH: self._push,
            Method.EXCHANGE: self._exchange,
            Method.COMPLETE: self._complete,
            Method.EXPORT: self._export,
            Method.STATUS: self._status,
        }

    def start(self) -> None:
        """Begin to watch deadlines."""
        self._shell.start(self._crashes)

    def stop(self) -> None:
        """Hand back the pushes of a round that will not close any more."""
        self._shell.stop()

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
            return method(message)
        except PsrtError as error:
            self.meters.refused.add()
            log.debug("refused method %d of %s: %s", message.header.method, peer, error)
            raise

    def status(self) -> dict[str, Any]:
        """What STATUS tells, as plain data."""
        return {
            "pid": os.getpid(),
            **self._shell.ask(lambda machine, now: machine.describe(now)),
            "tables": self.tables.describe(),
            "counters": self.meters.registry.snapshot(),
        }

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
        self._shell.ask(lambda machine, now: machine.heard(*_caller(header), now))
        created = self.tables.register(specs)
        if created:
            log.info("holds %d more tables: %s", len(created), ", ".join(created[:8]))
        return Message(pb.Header())

    def _pull(self, message: Message) -> Message:
        parts = parse(self.tables, message)
        if parts.pushes:
            raise WireError(
                "a PULL brought gradients; they were not applied.",
                hint="Gradients travel in PUSH or EXCHANGE.",
            )
        return read(parts.pulls, pb.Header(), self.meters)

    def _push(self, message: Message) -> Message:
        header = message.header
        parts, sequence = parse(self.tables, message), _sequence(header)
        step = self._shell.ask(
            lambda machine, now: machine.push(*_caller(header), sequence, header.step, now)
        )
        if step is None:
            self.meters.repeats.add()
        else:
            apply_now(parts.pushes, step, self.meters)
        return read(parts.pulls, pb.Header(), self.meters)

    def _exchange(self, message: Message) -> Message | Later:
        header = message.header
        waiting = Waiting(parse(self.tables, message), header.step)
        started = self._clock.now()
        patience_s = header.timeout_ms / 1000 if header.timeout_ms else math.inf
        call = Call(
            *(*_caller(header), _sequence(header), started + _ANSWER_BEFORE * patience_s),
            round=header.round or None,
            content=waiting,
        )
        self._shell.decide(lambda machine, now: machine.exchange(call, now))
        return Later(waiting.future, lambda: self._after_round(waiting, started))

    def _after_round(self, waiting: Waiting, started: float) -> Message:
        self.meters.waited.add(self._clock.now() - started)
        return read(waiting.parts.pulls, pb.Header(), self.meters)

    def _complete(self, message: Message) -> Message:
        header = message.header
        self._shell.decide(lambda machine, now: machine.complete(*_caller(header), now))
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

    def _status(self, message: Message) -> Message:
        return Message(pb.Header(status_json=json.dumps(self.status())))


def _caller(header: pb.Header) -> tuple[int, int]:
    """Trainer and incarnation: every call of a trainer carries both."""
    return header.trainer, header.push_key.incarnation


def _sequence(header: pb.Header) -> int:
    sequence: int = header.push_key.sequence
    if sequence == 0:
        raise WireError(
            f"trainer {header.trainer} sent gradients without a push key; they were refused.",
            hint="push_key.sequence counts 1, 2, 3 … per trainer process and pserver.",
        )
    return sequence


def _job(hello: pb.Hello) -> Job:
    mode = from_json(hello.mode)
    if not isinstance(mode, Sync | Async | HalfAsync | Geo):
        raise WireError(f"HELLO names no communication mode: {hello.mode!r}.")
    return Job(hello.job_id, hello.plan_hash, hello.trainers, mode)
