"""The trainer command, from settings to exit code.

A job whose number of trainers changes is trained again, from the cut of the change, by those that
stay.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

from psrt.config.sections import JobConfig, TrainerConfig
from psrt.core.errors import PsrtError
from psrt.core.service_manager import ServiceReporter
from psrt.trainer import report
from psrt.trainer.cuts import CUT_S
from psrt.trainer.inputs import Job, batches, load_job, state, warm_start_of
from psrt.trainer.models import export
from psrt.trainer.observing import Watchers, observed
from psrt.trainer.sessions.session import STOP_S, Session
from psrt.trainer.sessions.session_parts import cluster_for, run_of
from psrt.trainer.sessions.signals import StopSignals
from psrt.trainer.training import Say, prepared_process


def train(
    settings: TrainerConfig, config: JobConfig, say: Say, reporter: ServiceReporter | None = None
) -> int:
    """Train on this trainer's share; returns the exit code of the process."""
    reporter = reporter or ServiceReporter()
    warm_start_of(settings, config)  # a mistake raises before any work
    report.check_target(settings.report)
    report.check_target(settings.profile, "--profile")
    kept = state.path_of(settings.state, settings.trainer_id, settings.trainers)
    report.check_target(kept, "--state")
    if settings.save and settings.trainer_id == 0:
        export.check_target(Path(settings.save))
    leaves = partial(reporter.stopping, CUT_S + STOP_S)
    seen = observed(settings.metrics, reporter)
    with StopSignals(leaves) as signals, seen as watchers, prepared_process(settings, say):
        job = load_job(config)
        if settings.trainer_id == 0:
            batches.check_tests(job)
        while trainers := _train_once(settings, job, say, signals, watchers):
            settings = replace(settings, trainers=trainers, resume="")
    return signals.exit_code


def _train_once(
    settings: TrainerConfig, job: Job, say: Say, signals: StopSignals, watchers: Watchers
) -> int:
    """Train until the job has ended, or its number of trainers has changed.

    Returns the number with which this trainer joins again; 0 = it ends.
    """
    with (
        closing(run_of(settings, job, say)) as run,
        closing(cluster_for(settings, job, run, say)) as cluster,
        closing(Session(settings, job, run, cluster, say, watchers)) as session,
    ):
        trainers = 0
        try:
            session.run(signals)
        except PsrtError:
            if not (trainers := cluster.communicator.resized_to):
                raise
    goes_on = settings.trainer_id < trainers and not signals.received
    if goes_on:
        say(f"the job goes on with {trainers} trainers; joins again")
        return trainers
    if trainers:
        say(f"leaves: the job goes on with {trainers} trainers")
    report.write(settings.report, session.facts(signals.received))
    return 0
