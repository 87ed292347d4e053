"""One trainer process that trains, from settings to exit code.

    load the job · warm up kernels · reach the pservers · train · [trainer 0: wait for the others,
    test, save] · complete · report

Trainer 0 completes last, because pservers end once all trainers have completed (`completion` says
how it waits). A signal ends training after the running step: the trainer still completes, so that
the others go on without it, but nothing is tested or saved, and the exit code is 128 + the signal.
An error closes the connections without completing: to the pservers this trainer is then lost.

A trainer without pservers does the same with `Local` in place of `Cluster`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from psrt.communicator.base import Communicator
from psrt.config.schema import JobConfig, TrainerConfig
from psrt.core.clock import MonotonicClock
from psrt.core.errors import PsrtError
from psrt.core.types import F32, I64
from psrt.trainer import report
from psrt.trainer.inputs import Ahead, Job, Outputs, batches, load_job, state
from psrt.trainer.models import Manifest, export, prediction_of
from psrt.trainer.training import evaluate, profiling
from psrt.trainer.training.cluster import cluster_of
from psrt.trainer.training.completion import CompletionWait, Members, await_others, company
from psrt.trainer.training.local import Local
from psrt.trainer.training.profiling import Training
from psrt.trainer.training.progress import Progress
from psrt.trainer.training.signals import Interrupted, StopSignals
from psrt.trainer.training.workshop import Say, Workshop, prepared_process

log = logging.getLogger("psrt.trainer")

STOP_S = 10.0
"""After a signal, the most a trainer spends on its goodbye."""


def train(settings: TrainerConfig, config: JobConfig, say: Say) -> int:
    """Train on this trainer's share; returns the exit code of the process."""
    report.check_target(settings.report)
    report.check_target(settings.profile, "--profile")
    kept = state.path_of(settings.state, settings.trainer_id, settings.trainers)
    report.check_target(kept, "--state")
    if settings.save and settings.trainer_id == 0:
        export.check_target(Path(settings.save))
    with StopSignals() as signals, prepared_process(settings, say):
        with (
            closing(workshop(settings, load_job(config))) as shop,
            partners_of(settings, shop, say) as partners,
        ):
            session = Session(settings, shop, partners, say)
            try:
                session.train(signals)
                if not signals.received:
                    session.test_and_save()
            except Interrupted:
                pass
            session.leave(signals.received)
        report.write(settings.report, session.facts(signals.received))
    return signals.exit_code


def workshop(settings: TrainerConfig, job: Job) -> Workshop:
    """With replicas, and numbers drawn as for the batch that all trainers of a round share."""
    before = settings.trainer_id * job.config.data.batch_size
    return Workshop(job, settings.cpu_num, settings.local, before)


class Partners(Protocol):
    """Where the parameters of a training are: `Cluster`, or `Local`."""

    @property
    def communicator(self) -> Communicator: ...
    @property
    def tables(self) -> Sequence[str]:
        """The sparse tables to save."""
        ...

    def members(self) -> Members: ...
    def rows(self, table: str) -> Iterator[tuple[I64, F32]]: ...
    def hurry(self) -> None: ...


def partners_of(
    settings: TrainerConfig, shop: Workshop, say: Say
) -> AbstractContextManager[Partners]:
    return Local(shop) if settings.local else cluster_of(settings, shop.job, say, shop.own)


class Session:
    """One training: `train`, perhaps `test_and_save`, `leave`, then `facts`."""

    def __init__(
        self, settings: TrainerConfig, shop: Workshop, partners: Partners, say: Say
    ) -> None:
        self._settings, self._shop, self._partners, self._say = settings, shop, partners, say
        self._communicator = partners.communicator
        self._job = job = shop.job
        data = job.config.data
        self._progress = Progress(data.epochs, settings.log_every_s, MonotonicClock(), say)
        self._files = batches.training_files(job, settings.trainer_id, settings.trainers)
        self._recorder = state.recorder(settings, job.config, self._files)
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
        executor, communicator = self._shop.executor, self._communicator
        with profiling.training(self._settings, executor, communicator, self._say) as training:
            self._run(training, signals)

    def _run(self, training: Training, signals: StopSignals) -> None:
        outputs, shop = Outputs(self._job.model), self._shop
        exchange, epochs = self._communicator, self._job.config.data.epochs
        loop = training.loop(shop.steps, shop.scope, exchange, outputs, self._progress)
        loop.on_trained, start = self._recorder.trained, self._recorder.reached
        before = shop.first_example
        source = batches.feed(self._job, self._files, epochs, exchange.counters, before, start)

        def stop() -> None:
            loop.stop.set()
            self._partners.hurry()

        prepared = training.batches(source)
        with Ahead(prepared, batches.PREPARED_AHEAD) as ahead, signals.quietly(stop):
            loop.run(ahead)
        self._recorder.write()

    def test_and_save(self) -> None:
        """Trainer 0, if it has anything to do here: see the module docstring of `completion`."""
        if not self._tests and not self._save_to:
            return
        self._communicator.flush(self._settings.call_timeout_s, final=True)
        arrive = company(self._communicator, self._job.config.communication)
        await_others(self._waiting(), self._partners.members, arrive)
        self._shop.fill(self._communicator.flush(self._settings.call_timeout_s, final=True))
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
            self._partners.hurry()
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
            "mode": "local" if settings.local else config.mode,
            "trainer": settings.trainer_id,
            "trainers": settings.trainers,
            "pservers": len(settings.endpoints),
            "carrier": None if settings.local else settings.carrier,
            "stopped_by_signal": signal or None,
            **summary,
            "auc": summary.get("test_auc"),
            "counters": self._communicator.counters.snapshot(),
        }

    def _waiting(self) -> CompletionWait:
        settings = self._settings
        return CompletionWait(
            settings.trainer_id, settings.call_timeout_s, MonotonicClock(), self._say
        )

    def _save(self, directory: Path) -> None:
        job, partners = self._job, self._partners
        manifest = Manifest(
            job=job.config.name,
            software="psrt",
            program=job.program.to_text(),
            tables=job.whole_tables(),
            prediction=prediction_of(job),
        )
        sparse = {table: partial(partners.rows, table) for table in partners.tables}
        export.save(directory, manifest, self._shop.dense(), sparse)
        rows = sum(manifest.rows(table) for table in manifest.sparse)
        self._say(f"saved {directory}: {len(manifest.dense)} dense parameters, {rows:,} rows")


def say_hello(job: Job, settings: TrainerConfig, say: Say) -> None:
    config = job.config
    where = (
        "trains here, without pservers"
        if settings.local
        else f"trainer {settings.trainer_id} of {settings.trainers}, "
        f"{len(settings.endpoints)} pservers, mode {config.mode}"
    )
    data = config.data
    say(f"job {config.name}: {where}, batch {data.batch_size}, {data.epochs} epochs")
