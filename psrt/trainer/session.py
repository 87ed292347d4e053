"""One trainer process that trains, from settings to exit code.

    load the job · warm up kernels · reach the pservers · train · [trainer 0: wait for the others,
    test, save] · complete · report

Trainer 0 completes last, because pservers end once all trainers have completed (`completion` says
how it waits). A signal ends training after the running step: the trainer still completes, so that
the others go on without it, but nothing is tested or saved, and the exit code is 128 + the signal.
An error closes the connections without completing: to the pservers this trainer is then lost.
"""

from __future__ import annotations

import logging
import time
from functools import partial
from pathlib import Path
from typing import Any

from psrt.config.schema import JobConfig, TrainerConfig
from psrt.core.clock import MonotonicClock
from psrt.core.errors import PsrtError
from psrt.core.specs import Sync
from psrt.trainer import batches, evaluate, export, report
from psrt.trainer.ahead import Ahead
from psrt.trainer.cluster import Cluster
from psrt.trainer.completion import POLL_S, Waiting, await_others
from psrt.trainer.job import Job, load_job
from psrt.trainer.loop import Loop
from psrt.trainer.model_dir import Manifest
from psrt.trainer.outputs import Outputs
from psrt.trainer.progress import Progress
from psrt.trainer.signals import Interrupted, StopSignals
from psrt.trainer.workshop import Say, Workshop, prepared_process

log = logging.getLogger("psrt.trainer")

STOP_S = 10.0
"""After a signal, the most a trainer spends on its goodbye."""


def train(settings: TrainerConfig, config: JobConfig, say: Say) -> int:
    """Train on this trainer's share; returns the exit code of the process."""
    report.check_target(settings.report)
    if settings.save and settings.trainer_id == 0:
        export.check_target(Path(settings.save))
    with StopSignals() as signals, prepared_process(settings, say):
        job = load_job(config)
        with Cluster(settings, job, say) as cluster:
            session = Session(settings, job, cluster, say)
            try:
                session.train(signals)
                if not signals.received:
                    session.test_and_save()
            except Interrupted:
                pass
            session.leave(signals.received)
        report.write(settings.report, session.facts(signals.received))
    return signals.exit_code


class Session:
    """One training: `train`, perhaps `test_and_save`, `leave`, then `facts`."""

    def __init__(self, settings: TrainerConfig, job: Job, cluster: Cluster, say: Say) -> None:
        self._settings, self._job, self._cluster, self._say = settings, job, cluster, say
        self._communicator = cluster.communicator
        self._shop = Workshop(job)
        data = job.config.data
        self._progress = Progress(data.epochs, settings.log_every_s, MonotonicClock(), say)
        self._files = batches.training_files(job, settings.trainer_id, settings.trainers)
        first = settings.trainer_id == 0
        self._tests = batches.test_files(job) if first else []
        self._save_to = settings.save if first else ""
        self._results: dict[str, Any] = {}
        self._joined = False

    def train(self, signals: StopSignals) -> None:
        """Reach the pservers and train until the data or a signal ends it."""
        self._shop.fill(self._communicator.start(self._settings.connect_timeout_s))
        self._joined = True
        say_hello(self._job, self._settings, self._say)
        outputs = Outputs(self._job.model)
        shop = self._shop
        loop = Loop(shop.executor, shop.scope, self._communicator, outputs, self._progress)
        source = batches.feed(
            self._job, self._files, self._job.config.data.epochs, self._communicator.counters
        )

        def stop() -> None:
            loop.stop.set()
            self._cluster.hurry()

        with Ahead(source, batches.PREPARED_AHEAD) as ahead, signals.quietly(stop):
            loop.run(ahead)

    def test_and_save(self) -> None:
        """Trainer 0, if it has anything to do here: see the module docstring of `completion`."""
        if not self._tests and not self._save_to:
            return
        self._communicator.flush(self._settings.call_timeout_s)
        await_others(self._waiting(), self._cluster.members, self._arrive)
        self._shop.fill(self._communicator.flush(self._settings.call_timeout_s))
        if self._tests:
            source = batches.feed(self._job, self._tests)
            tested = self._shop.test(source, self._communicator)
            self._say(f"test  {tested.examples:,} examples  {tested.text()}")
            self._results |= evaluate.summary(tested)
        if self._save_to:
            self._save(Path(self._save_to))

    def leave(self, signal: int) -> None:
        """Complete; after a signal with little patience, and no complaint: it was asked to go."""
        if not self._joined:
            return
        if signal:
            self._cluster.hurry()
        try:
            self._communicator.stop(STOP_S if signal else self._settings.call_timeout_s)
        except PsrtError as error:
            if not signal:
                raise
            log.warning("left without completing: %s", error)

    def facts(self, signal: int) -> dict[str, Any]:
        """The report."""
        settings, config = self._settings, self._job.config
        summary = {**self._progress.summary(), **self._results}
        return {
            "job": config.name,
            "mode": config.mode,
            "trainer": settings.trainer_id,
            "trainers": settings.trainers,
            "pservers": len(settings.endpoints),
            "carrier": settings.carrier,
            "stopped_by_signal": signal or None,
            **summary,
            "auc": summary.get("test_auc"),
            "counters": self._communicator.counters.snapshot(),
        }

    def _waiting(self) -> Waiting:
        settings = self._settings
        return Waiting(settings.trainer_id, settings.call_timeout_s, MonotonicClock(), self._say)

    def _arrive(self) -> None:
        """Do not hold up the trainers that still train."""
        if isinstance(self._job.config.communication, Sync):
            self._communicator.finish({})
        else:
            time.sleep(POLL_S)

    def _save(self, directory: Path) -> None:
        job, cluster = self._job, self._cluster
        manifest = Manifest(
            job=job.config.name,
            software="psrt",
            program=job.program.to_text(),
            tables=job.whole_tables(),
        )
        sparse = {spec.name: partial(cluster.rows, spec.name) for spec in cluster.plan.sparse}
        export.save(directory, manifest, self._shop.dense(), sparse)
        rows = sum(manifest.rows(table) for table in manifest.sparse)
        self._say(f"saved {directory}: {len(manifest.dense)} dense parameters, {rows:,} rows")


def say_hello(job: Job, settings: TrainerConfig, say: Say) -> None:
    config = job.config
    say(
        f"job {config.name}: trainer {settings.trainer_id} of {settings.trainers}, "
        f"{len(settings.endpoints)} pservers, mode {config.mode}, "
        f"batch {config.data.batch_size}, {config.data.epochs} epochs"
    )
