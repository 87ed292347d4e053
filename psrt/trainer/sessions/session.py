"""One training of a trainer process, from its first step to its report.

    load the job · warm up kernels · [trainer 0: check test files] · reach the pservers · train ·
    [trainer 0: wait for the others, save, test] · complete · report

Trainer 0 completes last, because pservers end once all trainers have completed (see `completion`).
A signal ends training after the running step. The trainer reports that it leaves, so that the job's
policy for lost trainers applies at once; it says what was saved and what was not (`interruption`),
and its exit code is 128 + the signal. An error closes the connections without completing: to the
pservers this trainer is then lost.

A trainer without pservers has a `SingleTrainer` in place of a `ConnectedCluster`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator
from functools import partial
from typing import Any

from psrt.communicator.base import Beginning, Position, no_position
from psrt.config.sections import TrainerConfig
from psrt.core.clock import MonotonicClock
from psrt.core.errors import ErrorCode, JobError, PsrtError
from psrt.executor.profiling import Category
from psrt.trainer.cuts import Interruption, Leaving, LocalState, ScopeValues
from psrt.trainer.inputs import (
    Ahead,
    Job,
    Outputs,
    PreparedBatch,
    batches,
    redealing,
    resuming,
    state,
)
from psrt.trainer.measuring import Curves, DoneShare, Progress, curves
from psrt.trainer.observing import Watchers
from psrt.trainer.sessions.after_steps import AfterSteps
from psrt.trainer.sessions.callbacks import callbacks_of
from psrt.trainer.sessions.conclusion import Conclusion
from psrt.trainer.sessions.profiling import profiled, spanned
from psrt.trainer.sessions.session_parts import Cluster, print_job, saver_of, saves_of
from psrt.trainer.sessions.signals import Interrupted, StopSignals
from psrt.trainer.sessions.step_values import StepValues
from psrt.trainer.sessions.validation import course_of, looking_for_end, validator_for
from psrt.trainer.training import Say, SingleTrainer, TrainingRun

log = logging.getLogger("psrt.trainer")

STOP_S = 10.0
"""Time limit for completing after a signal."""


class Session:
    """One training: `train`, perhaps `save_and_test`, `leave`, then `facts`."""

    def __init__(
        self,
        settings: TrainerConfig,
        job: Job,
        run: TrainingRun,
        cluster: Cluster,
        say: Say,
        watchers: Watchers | None = None,
    ) -> None:
        self._watchers = watchers or Watchers()
        self._settings, self._job, self._run, self._cluster = settings, job, run, cluster
        self._communicator, self._say = cluster.communicator, say
        data = job.config.data
        self._files = batches.training_files(job, settings.trainer_id, settings.trainers)
        share = DoneShare(self._files, data.shuffle_seed, data.epochs)
        clock, every_s = MonotonicClock(), settings.log_every_s
        metrics = [*job.model.metrics, *job.model.measured]
        sinks = curves.sinks_of(settings.curves, settings.tensorboard, metrics)
        self._curves = Curves(sinks, clock)
        record = partial(self._curves.record, curves.TRAIN)
        self._progress = Progress(data.epochs, every_s, clock, say, share.at, record)
        self._outputs = Outputs(job.model)
        scope_values = ScopeValues(run.program, run.scope)
        self._values = StepValues(scope_values, self._progress, self._outputs)
        self._recorder = state.recorder(settings, job.config, self._files)
        self._local_state(run, cluster)
        self._results: dict[str, Any] = {}
        self._interruption = Interruption(settings)
        seen = self._progress, self._curves, self._interruption.saved
        self._validator = validator_for(settings, job, run, cluster, *seen, say)
        if self._validator is not None:
            self._recorder.validated = self._validator.course_at
        saver = saver_of(settings, job, run, cluster, say)
        saves = saves_of(settings, saver, self._progress, self._interruption.saved)
        callbacks = callbacks_of(settings, job, cluster.end_early, say)
        self._after_steps = AfterSteps(saves, self._validator, callbacks, self._progress)
        self._ends_early = False
        self._joined = False
        self._leaving: Leaving | None = None
        self._mode = "local" if settings.local else job.config.mode
        labels = job.config.name, self._mode, str(settings.trainer_id)
        self._watchers.begin(labels, run.spans, self._communicator, self._progress.numbers)

    def _local_state(self, run: TrainingRun, cluster: Cluster) -> None:
        """Let a training without pservers go on from the parameters of --resume, and keep its own
        with --state."""
        if not isinstance(cluster, SingleTrainer):
            return
        kept = LocalState(run.program, run.scope, run.executor, cluster.distributed)
        self._recorder.parameters = kept
        if resumed := self._settings.resume:
            kept.restore(resumed, state.parameters_in(resumed))

    def run(self, signals: StopSignals) -> None:
        """Train, save and test, leave; a signal ends the first two."""
        try:
            self.train(signals)
            if not signals.received:
                self.save_and_test()
        except Interrupted:
            pass
        except JobError as error:  # another trainer was interrupted, too, and left first
            if not (signals.received and error.code is ErrorCode.TRAINER_LOST):
                raise
            log.warning("%s", error.message)
        self.leave(signals.received)

    def train(self, signals: StopSignals) -> None:
        """Reach the pservers and train until the data or a signal ends it."""
        waiting: Category = "python" if self._settings.local else "communicate"
        self._communicator.begins_at(self._resume)
        self._communicator.follow_resizes()
        self._run.open(self._communicator, self._settings.connect_timeout_s, waiting)
        self._joined = True
        self._run.executor.begin_at(self._recorder.reached.steps)
        print_job(self._job, self._settings, self._say)
        self._after_steps.go_on(self._recorder.reached)
        with profiled(self._settings, self._run, self._say):
            self._train(signals)

    def _resume(self, found: Beginning) -> Position:
        """Go on where the cut was that the pservers began with, if they did."""
        recorder, share = self._recorder, self._recorder.share
        if found.report and self._settings.trainer_id == 0:
            self._say(found.report)
        if not found.cut:
            reached = self._behind_predecessor(recorder.reached, found)
            resuming.check(self._settings, self._job.config, reached.steps, self._cluster.members)
            return recorder.begin_at(reached)
        cut, positions = found.cut, found.positions
        reached = redealing.reached_in(cut, found.position, positions, self._job, share)
        kept = self._values.restore_of(share.trainer, found)
        epoch, steps = f"epoch {reached.epoch}", f"{reached.steps:,} steps"
        dealt = f"; data of {len(positions)} trainers dealt again" if positions else ""
        self._say(f"resumed cut {cut} in {epoch} after {steps}{dealt}")
        return recorder.begin_at(self._behind_predecessor(reached, found), kept)

    def _behind_predecessor(self, begun: state.Reached, found: Beginning) -> state.Reached:
        """The progress of a former process of this trainer, which had `begun` there too."""
        reached = begun.at_mark(found.reached) if found.reached else begun
        if found.reached:
            where = f"epoch {reached.epoch} after {reached.steps:,} steps"
            self._say(f"goes on for a process that ended: {where}")
        self._communicator.marks(reached.mark())
        return reached

    def _train(self, signals: StopSignals) -> None:
        run, ended = self._run, threading.Event()
        leaving = Leaving(self._communicator, ended, self._cluster.hurry, self._say)
        self._leaving = leaving
        self._end_if_decided(ended)
        looking = looking_for_end(
            self._settings, self._job, self._cluster, ended, self._recorder.reached.validated
        )
        with (
            Ahead(spanned(self._batches(), run.profiler), batches.PREPARED_AHEAD) as ahead,
            leaving,
            signals.quietly(leaving.begin),
            looking as early_end,
        ):
            if self._validator is None:
                patience = self._job.config.validation.patience
                self._recorder.validated = partial(course_of, early_end, patience)
            on_step, position = partial(self._after_step, ended), self._position_after
            run.run_from(ahead, self._outputs.names, on_step, self._begun, ended, position)
            self._progress.end()
        self._recorder.write()
        self._declare_trained(early_end.has_come)

    def _batches(self) -> Generator[PreparedBatch, None, None]:
        """The batches behind those that were trained before."""
        return batches.feed(
            self._job,
            self._files,
            self._job.config.data.epochs,
            self._communicator.counters,
            self._run.options.first_example,
            self._recorder.reached,
        )

    def _after_step(
        self,
        ended: threading.Event,
        batch: PreparedBatch,
        following: PreparedBatch | None,
        fetched: list[Any],
    ) -> None:
        """Record a step; sets `ended` if it was the last one by decision."""
        is_last = following is None
        if fetched:
            measured = self._outputs.read(fetched)
            self._progress.step(batch.epoch, batch.examples, measured, batch.place, is_last)
        else:
            self._progress.skipped_step(is_last)
        self._recorder.trained(batch, following)
        self._between_steps(batch, following, ended)

    def _declare_trained(self, end_was_decided: bool) -> None:
        """Report to pservers that cut the job at its end that training is over, if it is."""
        is_over = self._recorder.reached.epoch > self._job.config.data.epochs
        if self._communicator.makes_cuts and (is_over or end_was_decided or self._ends_early):
            self._communicator.declare_trained()

    def _between_steps(
        self, batch: PreparedBatch, following: PreparedBatch | None, ended: threading.Event
    ) -> None:
        next_epoch = None if following is None else following.epoch
        if self._after_steps.after(batch.epoch, next_epoch, self._recorder.reached.steps):
            self._recorder.write()  # the state of this point, now with its validation
        self._end_if_decided(ended)

    def _end_if_decided(self, ended: threading.Event) -> None:
        if self._after_steps.has_ended:
            self._ends_early = True
            ended.set()

    def _begun(self) -> None:
        """Report that training begins: the first batch and its rows have arrived."""
        self._progress.start()
        patience_s = self._settings.connect_timeout_s + 2 * self._settings.call_timeout_s
        self._watchers.ready(partial(self._progress.describe, patience_s))

    def _position_after(
        self, batch: PreparedBatch, following: PreparedBatch | None, fetched: list[Any]
    ) -> Position:
        self._communicator.marks(self._recorder.mark_after(batch, following))
        if not self._communicator.makes_cuts:
            return no_position
        kept = self._values.after(batch.epoch, batch.examples, fetched)
        return self._recorder.position_after(batch, following, kept)

    def save_and_test(self) -> None:
        """Save and test on trainer 0; see `conclusion`."""
        if self._settings.trainer_id == 0:
            parts = self._settings, self._job, self._run, self._cluster, self._say
            has_best = self._validator is not None and self._validator.has_kept
            self._results |= Conclusion(*parts, self._interruption.saved, has_best).save_and_test()

    def leave(self, signal: int) -> None:
        """Complete; after a signal leave instead, with a short timeout and without raising."""
        if not signal:
            self._communicator.stop(self._settings.call_timeout_s)
            return
        if self._joined:
            self._cluster.hurry()
            cut = self._leaving.complete_cut() if self._leaving is not None else 0
            self._interruption.has_cut(cut, self._communicator.makes_cuts)
            self._tell_pservers()
        self._say(self._interruption.text(signal, self._recorder.reached))

    def _tell_pservers(self) -> None:
        try:
            self._communicator.stop(STOP_S, interrupted=True)
        except PsrtError as error:
            log.warning("left without a word to every pserver: %s", error.message)

    def close(self) -> None:
        """Close the files of curves, also of a training that failed."""
        self._curves.close()

    def facts(self, signal: int) -> dict[str, Any]:
        """The report."""
        settings, config = self._settings, self._job.config
        validated = self._validator.summary() if self._validator is not None else {}
        summary = {**self._progress.summary(), **validated, **self._results}
        return {
            "job": config.name,
            "mode": self._mode,
            "trainer": settings.trainer_id,
            "trainers": settings.trainers,
            "pservers": len(settings.endpoints),
            "carrier": None if settings.local else settings.carrier,
            "stopped_by_signal": signal or None,
            **summary,
            "auc": summary.get("test_auc"),
            "counters": self._communicator.counters.snapshot(),
        }
