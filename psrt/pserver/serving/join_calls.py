"""Handlers of HELLO, ATTEND, REGISTER and RESENT: a trainer joins a job, whose tables exist."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from psrt.core.errors import ConfigError, ErrorCode, PsrtError, UnavailableError
from psrt.core.randomness import system_random
from psrt.core.specs import Async, Geo, TableSpec
from psrt.pserver.checkpoints import RecoveredPart
from psrt.pserver.decisions import JobIdentity, MemberState, begin_anew, read_spec, restore
from psrt.pserver.eviction import Upkeep
from psrt.pserver.loading import TableLoad, TableLoader
from psrt.pserver.serving.cuts import CutCalls
from psrt.pserver.serving.effect_runner import EffectRunner
from psrt.pserver.serving.request_headers import caller_of, job_of, lineage_reply
from psrt.pserver.tables import TableRegistry
from psrt.pserver.warm import WarmTables
from psrt.rpc import pb
from psrt.rpc.wire import Message

log = logging.getLogger("psrt.pserver")

OnRegistered: TypeAlias = Callable[[JobIdentity, Sequence[str], int, bool], None]
"""Called by REGISTER with the job, the endpoints of its pservers in the order of the plan, the
number of this one among them, and whether the job has `durability = "replica"`."""


Beginning: TypeAlias = tuple[str, Sequence[TableSpec]]
"""The canonical JSON of a warm start, "" for none, and the whole parameters of the job."""


class JoinCalls:
    """The calls by which a job begins; `incarnation` is that of the tables."""

    def __init__(
        self,
        runner: EffectRunner,
        tables: TableRegistry,
        upkeep: Upkeep,
        loader: TableLoader,
        cuts: CutCalls,
        incarnation: int,
        job_time: Callable[[], int],
        on_registered: OnRegistered,
    ) -> None:
        self._runner, self._tables, self._upkeep, self._cuts = runner, tables, upkeep, cuts
        self._loader = loader
        self._incarnation, self._job_time = incarnation, job_time
        self._process = system_random.getrandbits(63) | 1
        self._warm = WarmTables()
        self._on_registered, self._is_replicated = on_registered, False

    def hello(self, message: Message) -> Message:
        """Introduce a trainer's process; without a plan hash, only return what HELLO replies."""
        header = message.header
        facts = pb.HelloReply(incarnation=self._incarnation, process=self._process, software="psrt")
        reply = pb.Header(hello_reply=facts)
        if header.hello.plan_hash:
            job = job_of(header.hello)
            self._cuts.resuming.check(job)
            reply.hello_reply.makes_cuts = self._cuts.settings is not None
            may_resize = header.hello.durability != "replica"
            self._runner.decide(
                lambda state, now: state.hello(*caller_of(header), job, now, may_resize)
            )
            self._cuts.durability.greeted(header.hello)
            self._is_replicated |= header.hello.durability == "replica"
            members = self._runner.ask(lambda state, now: state.members)
            reply.hello_reply.held_by = members.held_by(*caller_of(header))
            reply.hello_reply.held_is_new = self._runner.ask(
                lambda state, now: state.may_begin_anew(*caller_of(header))
            )
            reply.round = self._runner.ask(lambda state, now: state.open_round)
        return Message(reply)

    def check_process(self, header: pb.Header) -> None:
        """Raise `UnavailableError` for a call that was meant for another process.

        Its caller has not met this one, and may have pushes that the tables here lack.
        """
        if header.process not in (0, self._process):
            raise UnavailableError(
                "the pserver was started again after the HELLO of this caller; the call was "
                "refused.",
                code=ErrorCode.RESTARTED,
            )

    def attend(self, message: Message) -> Message:
        """Let a process take its place; the service records its connection."""
        self._join(message.header)
        reply = pb.Header()
        self._cuts.durability.report(message.header, reply)
        return Message(reply)

    def resent(self, message: Message) -> Message:
        """Record that a trainer has sent its pushes again after a recovery."""
        header = message.header
        complete = header.cut.complete
        self._runner.decide(lambda state, now: state.resent(*caller_of(header), now, complete))
        self._runner.ask(lambda state, now: state.raise_if_aborted())
        self._cuts.rejoined(header)
        missing = self._runner.ask(lambda state, now: state.recovery.missing)
        log.info("trainer %d has sent its pushes again; missing: %s", header.trainer, missing or 0)
        return Message(pb.Header())

    def register(self, message: Message) -> Message:
        """Create the tables that do not exist yet; the reply has where the trainer begins."""
        header = message.header
        self._join(header)
        specs = [read_spec(text) for text in header.register.specs]
        found = [(each.endpoint, each.incarnation) for each in header.register.pservers]
        begins = header.HasField("cut") and not header.cut.last_push
        replaces = header.register.predecessor
        facts = replaces, begins, header.register.begins_anew, self._is_replicated
        job = self._runner.ask(
            lambda state, now: state.register(*caller_of(header), dict(found), now, *facts)
        )
        report = self._open_warm_start(header.register, job)
        self._cuts.joins(found, header.register)
        self.create(specs, job)
        self._cuts.joined(found, self._job_time)
        mine = [part for part, (_, each) in enumerate(found) if each == self._incarnation]
        if mine:
            endpoints = [endpoint for endpoint, _ in found]
            self._on_registered(job, endpoints, mine[0], self._is_replicated)
        return self._beginning_of(header.trainer, job, report)

    def _beginning_of(self, trainer: int, job: JobIdentity, report: str) -> Message:
        """The reply to REGISTER: where `trainer` begins, and the `report` of a warm start."""
        cut = self._cuts.beginning_of(trainer, job.trainers)
        members = self._runner.ask(lambda state, now: state.members)
        known = self._runner.ask(lambda state, now: lineage_reply(members.lineages.of(trainer)))
        answer = pb.Register(report=report, lineage=known) if report or known else None
        reply = pb.Header(cut=cut, register=answer)
        reply.complete.recorded = members.has_completed(trainer)
        return Message(reply)

    def recover(self, recovered: RecoveredPart) -> None:
        """Go on with the job and the tables of a killed predecessor, which begin to load.

        Raises the errors of a warm start whose source has gone.
        """
        job = self._runner.ask(lambda state, now: restore(state, recovered.state, now))
        trainers = recovered.resized_to
        if trainers and recovered.cut is not None:
            number = recovered.cut.number
            self._runner.ask(lambda state, now: begin_anew(state, number, trainers))
            job = replace(job, trainers=trainers)
        if recovered.began_at:
            members = self._runner.ask(lambda state, now: state.members.members)
            joined = (each for each in members if each.state is not MemberState.UNSEEN)
            self._begin_from(
                recovered.began_at, {each.trainer: each.incarnation for each in joined}
            )
        self._runner.ask(self._cuts.durability.recovered)
        if recovered.warm_start and self._cuts.begins_with is None:
            self._warm.open(recovered.warm_start, recovered.parameters)
        if recovered.is_beginning:
            self._tables.processes_before = recovered.process
        self.create(recovered.specs, job)

    def _begin_from(self, number: int, joined: Mapping[int, int]) -> None:
        """Hand out the positions of the cut that trainers begin with; some have `joined`."""
        try:
            self._cuts.begin_from(number, joined)
        except PsrtError as error:
            log.warning("trainers that have not joined yet begin anew: %s", error)

    def create(self, specs: Sequence[TableSpec], job: JobIdentity) -> None:
        """Create tables, with the values of a warm start; those of a cut begin to load."""
        mode, loads = job.mode, list[TableLoad]()
        created = self._tables.register(
            specs,
            mode.dc_asgd if isinstance(mode, Async) else 0.0,
            logs_changes=isinstance(mode, Geo),
            are_loaded=self._cuts.begins_with is None,
            prepare=partial(self._begin, loads),
        )
        if created:
            self._loader.load(loads)
            log.info("holds %d more tables: %s", len(created), ", ".join(created[:8]))
            self._upkeep.tables_added()

    def _open_warm_start(self, register: pb.Register, job: JobIdentity) -> str:
        """Find the source that new tables begin with; returns a report, "" without a warm start.

        A pserver that begins with a cut takes nothing from a warm start.
        """
        if not register.warm_start:
            return ""
        parameters = [read_spec(text) for text in register.parameters]
        return self.begin_with(register.warm_start, parameters, job)

    def begin_with(self, warm_start: str, parameters: Sequence[TableSpec], job: JobIdentity) -> str:
        """Give new tables the values of a warm start; returns a report, "" if a cut goes before.

        Raises `ConfigError` in mode geo, and the errors of a source that is missing or damaged.
        """
        if self._cuts.begins_with is not None:
            return ""
        if isinstance(job.mode, Geo):
            raise ConfigError(
                "mode geo has no warm start: its trainers begin with initial values. Nothing was "
                "trained.",
                hint="Use another mode, or begin without a warm start.",
            )
        return self._warm.open(warm_start, parameters)

    def _begin(self, loads: list[TableLoad], table: Any) -> None:
        """Give a new table its first values, or add it to `loads`."""
        if self._cuts.begins_with is not None:
            loads.append(TableLoad(table, self._cuts.begins_with))
        else:
            self._warm.fill(table)

    def _join(self, header: pb.Header) -> None:
        """Let the caller's process take its place, if it has sent nothing but HELLO before."""
        process = caller_of(header)
        members = self._runner.ask(lambda state, now: state.members_of_job(header.trainer))
        is_new = self._runner.ask(lambda state, now: members.begins(*process))
        self._runner.decide(lambda state, now: state.attend(*process, now))
        self._runner.ask(lambda state, now: state.raise_if_aborted())
        if is_new:
            log.info("trainer %d joined", header.trainer)
