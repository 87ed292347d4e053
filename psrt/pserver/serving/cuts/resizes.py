"""A change of the number of trainers: the request, and the beginning anew in place."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from psrt.coordinator.part_chain import PartOutcome
from psrt.core.errors import ConfigError, PsrtError
from psrt.core.specs import Geo
from psrt.pserver.checkpoints import Coordination, complete_cuts
from psrt.pserver.decisions import JobIdentity, MemberState, PserverState, given_up, of_unknown_end
from psrt.pserver.serving.cuts.cut_calls import CutCalls
from psrt.pserver.serving.cuts.cut_requests import cut_reply, no_cut
from psrt.pserver.serving.effect_runner import EffectRunner
from psrt.rpc.serving import Later
from psrt.rpc.wire import Message

log = logging.getLogger("psrt.pserver")


class Resizes:
    """The changes of one pserver.

    `forget` drops what is kept for a trainer. `on_resized` is called with the new number of
    trainers once the job has begun anew with it.
    """

    def __init__(
        self,
        cuts: CutCalls,
        runner: EffectRunner,
        forget: Callable[[int], None],
        on_resized: Callable[[int], None],
    ) -> None:
        self._cuts, self._runner = cuts, runner
        self._forget, self._on_resized = forget, on_resized
        if cuts.settings is not None:
            runner.ask(lambda state, now: state.resizing.allow())

    def request(self, message: Message) -> Later:
        """Handle a CHECKPOINT from which the job goes on with another number of trainers.

        Call `check` before. Raises `JobError` if a trainer does not run.
        """
        trainers = message.header.cut.trainers
        coordination = self._cuts.coordinating(message.header)
        self._runner.ask(lambda state, now: _check_all_run(state))
        log.info("asks for a cut from which the job goes on with %d trainers", trainers)
        caller = coordination.request(trainers)
        return Later(caller.future, lambda: cut_reply(caller.number, trainers=trainers))

    def check(self, message: Message) -> None:
        """Raise unless a CHECKPOINT may ask for its number of trainers, if it does.

        `ConfigError` for a job whose number cannot change, or has changed already (also for a
        repeated request, whoever runs), and on any but the first pserver; `JobError` before a
        trainer has joined.
        """
        if not message.header.cut.trainers:
            return
        coordination = self._cuts.coordinating(message.header)
        if (job := self._runner.ask(lambda state, now: state.job)) is None:
            raise no_cut("no trainer has joined")
        resizing = self._runner.ask(lambda state, now: state.resizing)
        if 0 < resizing.number <= coordination.complete:  # it begins anew in a moment
            job = replace(job, trainers=resizing.trainers or job.trainers)
        check_can_change(job, message.header.cut.trainers, self._cuts.durability.is_replicated)

    def cut(self, message: Message) -> Message | Later:
        """Handle CUT; gives up a change of the number of trainers that a trainer cannot follow."""
        header, coordination = message.header, self._cuts.coordination
        number, trainers = header.cut.number, self._cuts.trainers_from(header.cut.number)
        if coordination is not None:
            self._check_proposed(number, coordination)
        if coordination is not None and trainers and header.cut.trainers != trainers:
            why = f"trainer {header.trainer} runs a script, whose number of trainers cannot change"
            self._runner.decide(lambda state, now: state.cuts.refuse(number, why))
            coordination.part(number, self._cuts.first, "", why)
            raise no_cut(why)
        if header.cut.trainers:
            self._check_missed(number, header.cut.trainers)
        return self._cuts.cut(message, self._runner)

    def _check_proposed(self, number: int, coordination: Coordination) -> None:
        """Raise `JobError` for a cut that was given up: a trainer may meet its proposal late."""
        frozen = self._runner.ask(lambda state, now: state.cuts.frozen_number)
        if number not in (frozen, coordination.proposed):
            raise given_up(number, "it is not proposed any more")

    def _check_missed(self, number: int, trainers: int) -> None:
        """End the job if this pserver was killed during a change whose cut became complete.

        It goes on from before the cut, and other pservers have begun anew. To freeze its tables for
        the cut again would replace files of a complete one.
        """
        frozen = self._runner.ask(lambda state, now: state.cuts.frozen_number)
        settings = self._cuts.settings
        if settings is not None and frozen < number and number in complete_cuts(settings.directory):
            self._runner.decide(lambda state, now: state.abort(of_unknown_end(number, trainers)))

    def ended(self, number: int, outcome: PartOutcome) -> None:
        """Begin anew, or go on as before, at the end of a cut; nothing for one without a change."""
        pending, trainers = self._runner.ask(
            lambda state, now: (state.resizing.number, state.resizing.trainers)
        )
        if not pending or number != pending:
            return
        if outcome is PartOutcome.COMPLETE:
            self._begin_anew(number, trainers)
        elif outcome is PartOutcome.GIVEN_UP:
            why = "see the logs of the pservers"
            self._runner.decide(lambda state, now: state.not_resized(why))
        else:
            self._runner.decide(lambda state, now: state.resize_unknown())

    def _begin_anew(self, number: int, trainers: int) -> None:
        try:
            self._cuts.begin_from(number)
        except PsrtError as error:
            log.error("cut %d cannot be read, from which the job was to go on: %s", number, error)
            self._runner.decide(lambda state, now: state.resize_unknown())
            return
        members = self._runner.ask(lambda state, now: list(state.members.members))
        for member in members:
            self._forget(member.trainer)
        self._runner.decide(lambda state, now: state.resized())
        log.info("goes on from cut %d with %d trainers, before: %d", number, trainers, len(members))
        self._on_resized(trainers)


def _check_all_run(state: PserverState) -> None:
    absent = [m.trainer for m in state.members.members if m.state is not MemberState.RUNNING]
    if absent:
        one = state.members.members[absent[0]]
        raise no_cut(
            f"trainer {one.trainer} is {one.state.value}, and a change of the number of "
            "trainers needs all to run"
        )


def check_can_change(job: JobIdentity, trainers: int, is_replicated: bool) -> None:
    """Raise `ConfigError` unless `job` can go on with `trainers` trainers."""
    JobIdentity(job.job_id, job.plan_hash, trainers, job.mode).check()
    if trainers == job.trainers:
        raise ConfigError(f"the job has {trainers} trainers already; nothing was changed.")
    reason = ""
    if isinstance(job.mode, Geo):
        reason = "in mode geo trainers hold parameters of their own"
    elif is_replicated:
        reason = "with durability replica a backup would go on with the former trainers"
    if reason:
        raise ConfigError(
            f"the number of trainers of this job cannot change while it runs: {reason}. Nothing "
            "was changed.",
            hint="End the job by SIGTERM, which makes a cut, and start it again with --resume "
            "latest and the number of trainers that you want.",
        )
