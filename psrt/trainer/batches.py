"""From a job's files to prepared batches: which files, parsed by reader threads, deduplicated.

`feed` is the source of an `Ahead`: its code runs in the background thread, the reader's threads
run behind it, and all of them end with the generator.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Sequence
from pathlib import Path

from psrt.core.errors import ConfigError
from psrt.core.metrics import Registry
from psrt.data import files
from psrt.data.queue import QueueReader
from psrt.executor.derived import DerivedIds
from psrt.trainer.job import Job
from psrt.trainer.prefetch import Prepared, prepare

PREPARED_AHEAD = 2
"""Prepared batches that may wait for the trainer; parsed ones wait in the reader's queue."""


def training_files(job: Job, trainer_id: int, trainers: int) -> list[Path]:
    """The files this trainer trains on."""
    config = job.config
    if not config.data.train:
        raise ConfigError(
            f"job {config.name} names no training files.",
            hint='Add train = ["data/train-*"] to [data] of the job file.',
        )
    return files.share(files.expand(config.data.train, config.resolve("")), trainer_id, trainers)


def test_files(job: Job) -> list[Path]:
    """The held-back files; none if the job has no test data."""
    return files.expand(job.config.data.test, job.config.resolve(""))


def feed(
    job: Job,
    paths: Sequence[Path],
    epochs: int = 1,
    counters: Registry | None = None,
    first_example: int = 0,
) -> Generator[Prepared, None, None]:
    """All batches of all epochs, in one sequence, with the ids that the program derives from them.

    `first_example` is as in `Executor`.
    """
    data = job.config.data
    derived, step = DerivedIds(job.program, first_example), itertools.count()
    for epoch in range(1, epochs + 1):
        reader = QueueReader(
            paths,
            job.slots,
            data.batch_size,
            data.reader_threads,
            data.queue_batches,
            counters=counters,
        )
        with reader as batches:
            for batch in batches:
                fed = derived.extend(job.shaped(batch), next(step))
                yield prepare(dict(fed), job.tables, epoch)
