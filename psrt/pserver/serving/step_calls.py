"""Handlers of PULL, PUSH, EXCHANGE and MEET: the calls of a training step."""

from __future__ import annotations

import math

from psrt.core.clock import Clock
from psrt.core.errors import WireError
from psrt.core.specs import Sync
from psrt.pserver.decisions import Meeting, WaitingCall
from psrt.pserver.serving.cuts import CutCalls
from psrt.pserver.serving.effect_runner import EffectRunner, PendingReply
from psrt.pserver.serving.id_list_cache import IdListCache
from psrt.pserver.serving.kept_reads import KeptReads
from psrt.pserver.serving.parts import RequestParts, RowsPush, bucket_of, parse
from psrt.pserver.serving.request_headers import caller_of, progress_of, sequence_of
from psrt.pserver.serving.updates import read
from psrt.pserver.tables import Meters, TableRegistry
from psrt.rpc import pb
from psrt.rpc.serving import Later, deadline_of
from psrt.rpc.wire import Message


class StepCalls:
    """The calls that push gradients, pull parameters, or wait for other trainers."""

    def __init__(
        self,
        runner: EffectRunner,
        tables: TableRegistry,
        id_lists: IdListCache,
        cuts: CutCalls,
        meters: Meters,
        clock: Clock,
    ) -> None:
        self._runner, self._tables, self._id_lists = runner, tables, id_lists
        self._cuts, self._meters, self._clock = cuts, meters, clock
        self._kept = KeptReads()

    def pull(self, message: Message) -> Message:
        """Read parameters and rows as they are now."""
        header, parts = message.header, self._parts(message)
        if parts.pushes:
            raise WireError(
                "a PULL has gradients; they were not applied.",
                hint="Gradients travel in PUSH or EXCHANGE.",
            )
        self._runner.ask(lambda state, now: state.pull(*caller_of(header), now, parts.acknowledges))
        if not header.lineage.keeps_reads:
            return self._read(parts, header.trainer, pb.Header())
        step = header.lineage.settled + 1
        newest = self._runner.ask(lambda state, now: state.members.lineages.newest(header.trainer))
        if newest >= step:  # a former process has pushed the step here, and not everywhere
            found = self._kept.again(header.trainer, header.lineage.origin, step, parts.pulls)
            if found is not None:
                return found
        return self._kept_read(parts, header, step, pb.Header())

    def push(self, message: Message) -> Message | Later:
        """Apply gradients on arrival, then read."""
        header = message.header
        pending = PendingReply(self._pushed(message))
        facts = *caller_of(header), sequence_of(header), math.inf
        call = WaitingCall(*facts, content=pending, progress=progress_of(header))
        self._runner.decide(lambda state, now: state.push(call, header.step, now))
        return pending.reply(lambda: self._after_push(pending, header))

    def _after_push(self, pending: PendingReply, header: pb.Header) -> Message:
        reply = pb.Header(step=self._runner.ask(lambda state, now: state.global_step))
        if self._cuts.complete:
            reply.cut.complete = self._cuts.complete
        self._cuts.durability.report(header, reply)
        return self._read(pending.parts, header.trainer, reply)

    def exchange(self, message: Message) -> Message | Later:
        """Add gradients to a round of Sync, and read once it is closed."""
        header = message.header
        pending = PendingReply(self._pushed(message), header.step)
        started = self._clock.now()
        call = WaitingCall(
            *(*caller_of(header), sequence_of(header), deadline_of(header, started)),
            round=header.round or None,
            content=pending,
            bucket=bucket_of(pending.parts),
            progress=progress_of(header),
            sums=next((push.sums for push in pending.parts.pushes), None),
        )
        self._runner.decide(lambda state, now: state.exchange(call, now))
        return pending.reply(lambda: self._after_round(pending, header, started))

    def _after_round(self, pending: PendingReply, header: pb.Header, started: float) -> Message:
        self._meters.waited.add(self._clock.now() - started)
        reply = pb.Header()
        number = self._runner.ask(lambda state, now: state.cuts.behind(header.round))
        if number or self._cuts.complete:
            reply.cut.number, reply.cut.complete = number, self._cuts.complete
            reply.cut.trainers = self._cuts.trainers_from(number)
        self._cuts.durability.report(header, reply)
        return self._kept_read(pending.parts, header, header.lineage.settled + 2, reply)

    def release(self, trainer: int) -> None:
        """Drop what is kept for a trainer that has completed or is lost."""
        self._kept.release(trainer)

    def _kept_read(
        self, parts: RequestParts, header: pb.Header, step: int, reply: pb.Header
    ) -> Message:
        """Read, and keep the reply on which the caller computes a step."""
        message = self._read(parts, header.trainer, reply)
        if not header.lineage.keeps_reads:
            return message
        mode = self._runner.ask(lambda state, now: state.job and state.job.mode)
        if isinstance(mode, Sync) and mode.on_trainer_loss != "abort":
            self._kept.add(header.trainer, header.lineage.origin, step, parts.pulls, message)
        return message

    def meet(self, message: Message) -> Message | Later:
        """Wait until the other trainers have reached a time on a clock."""
        header, pending, started = message.header, PendingReply(), self._clock.now()
        asked = header.meet
        call = WaitingCall(*caller_of(header), 0, deadline_of(header, started), content=pending)
        meeting = Meeting(asked.clock, asked.reached, asked.awaited, asked.note, asked.begins)
        self._runner.decide(lambda state, now: state.meet(call, meeting, now))
        return pending.reply(lambda: self._after_meet(header.trainer, meeting, started))

    def _after_meet(self, trainer: int, met: Meeting, started: float) -> Message:
        self._meters.met.add(self._clock.now() - started)
        slowest, notes, begin = self._runner.ask(
            lambda state, now: (
                state.clocks.slowest_other(trainer, met.clock),
                state.clocks.notes(met.clock, met.awaited),
                state.clocks.begin(trainer, met),
            )
        )
        reply = pb.MeetReply(slowest=slowest, notes=notes, begin=begin)
        return Message(pb.Header(meet_reply=reply))

    def _pushed(self, message: Message) -> RequestParts:
        """Parts whose new rows have room."""
        parts = self._parts(message)
        pushed = (push for push in parts.pushes if isinstance(push, RowsPush))
        self._tables.limit.check_rows((push.table, push.rows) for push in pushed)
        return parts

    def _parts(self, message: Message) -> RequestParts:
        return parse(self._tables, self._id_lists, message)

    def _read(self, parts: RequestParts, trainer: int, reply: pb.Header) -> Message:
        return read(parts, trainer, reply, self._id_lists, self._meters)
