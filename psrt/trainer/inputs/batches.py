"""A job's files to prepared batches: shared out, parsed by reader threads, deduplicated.

`feed` is the source of an `Ahead`: its code runs in the background thread, the reader's threads
run behind it, and all of them end with the generator.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path

from psrt.core.counters import Counters
from psrt.core.errors import ConfigError, DataError, ErrorCode
from psrt.data.formats import Format, TextFormat, format_named
from psrt.data.reading import QueueReader
from psrt.data.sources import STDIN, DataFile, files, shard_files, shards_of
from psrt.trainer.inputs.job import Job
from psrt.trainer.inputs.label_ranges import Where, check_labels, label_ranges
from psrt.trainer.inputs.prefetch import BatchPreparer, PreparedBatch
from psrt.trainer.inputs.state import AT_THE_START, Reached

CHECKED_BYTES = 1 << 30
"""Text of test files that is read before training begins."""

PREPARED_AHEAD = 2
"""Prepared batches that may wait for the trainer; parsed ones wait in the reader's queue."""


def training_files(job: Job, trainer_id: int, trainers: int) -> list[DataFile]:
    """The files, or parts of files, this trainer trains on."""
    return shard_files(_all_files(job), trainer_id, trainers, *_sharding(job))


def files_of_all(job: Job, trainers: int) -> list[list[DataFile]]:
    """The files, or parts of files, of each of `trainers` trainers."""
    return shards_of(_all_files(job), trainers, *_sharding(job))


def _all_files(job: Job) -> list[Path | str]:
    config = job.config
    if not config.data.train:
        raise ConfigError(
            f"job {config.name} names no training files.",
            hint='Add train = ["data/train-*"] to [data] of the job file.',
        )
    return files.expand(config.data.train, config.resolve(""))


def _sharding(job: Job) -> tuple[str, bool]:
    return job.config.data.shard, isinstance(format_of(job), TextFormat)


def test_files(job: Job) -> list[Path | str]:
    """The held-back files; none if the job has no test data."""
    return files.expand(job.config.data.test, job.config.resolve(""))


def validation_files(job: Job) -> list[Path | str]:
    """The files that are tested while training goes on; none if the job has none."""
    return files.expand(job.config.data.validation, job.config.resolve(""))


def check_tests(job: Job) -> None:
    """Read test and validation files, up to `CHECKED_BYTES` of each; raises the `DataError` of a
    bad line.

    So a mistake in them costs no training. Training goes on for minutes without its trainer 0 if
    they are large, so what lies behind is read by the test alone.
    """
    for paths in (validation_files(job), test_files(job)):
        _check_files(job, [path for path in paths if path != STDIN])


def _check_files(job: Job, paths: list[Path | str]) -> None:
    data, counters = job.config.data, Counters()
    if not paths:
        return
    options = data.batch_size, data.reader_threads, data.queue_batches
    format, ranges = format_of(job), label_ranges(job.program)
    read = QueueReader(paths, job.slots, *options, format=format, counters=counters)
    with read as batches:
        for batch in batches:
            check_labels(ranges, batch, Where(paths, format))
            if counters.snapshot()["data_bytes"] > CHECKED_BYTES:
                return


def format_of(job: Job) -> Format:
    """Return the format of a job's files; errors name the job file."""
    data = job.config.data
    columns = {"columns": data.columns} if data.columns else {}
    return format_named(data.format, job.slots, {**data.options, **columns}, job.config.path)


def feed(
    job: Job,
    paths: Sequence[DataFile],
    epochs: int = 1,
    counters: Counters | None = None,
    first_example: int = 0,
    start: Reached = AT_THE_START,
) -> Generator[PreparedBatch, None, None]:
    """All batches of all epochs, in one sequence, with the ids that the program derives from them.

    The order of the files is drawn from the job's shuffle seed and the epoch. `first_example` is
    that of `Executor`. An earlier process trained on the data before `start`; with one reader
    thread the batches are those that would have followed in it. Raises `DataError` if the files
    have no example at all.
    """
    data, format = job.config.data, format_of(job)
    preparer = BatchPreparer(job.program, first_example, start.steps)
    ranges, is_empty = label_ranges(job.program), start == AT_THE_START
    for epoch in range(start.epoch, epochs + 1):
        dealt = start.files_in(epoch, paths, data.shuffle_seed)
        reader = QueueReader(
            dealt.files,
            job.slots,
            data.batch_size,
            data.reader_threads,
            data.queue_batches,
            format=format,
            first=dealt.place,
            counters=counters,
        )
        with reader as batches:
            for batch in batches:
                check_labels(ranges, batch, Where(dealt.files, format))
                is_empty = False
                yield preparer.prepare(job.shaped(batch), epoch, reader.place)
        if is_empty:
            raise _no_example(dealt.files)


def _no_example(paths: Sequence[DataFile]) -> DataError:
    return DataError(
        f"the training files of this trainer have no example: {', '.join(map(str, paths))}. It "
        "trained nothing, and no model is saved.",
        code=ErrorCode.DATA_MISSING,
        hint="Look at the files, or leave out the empty ones; with fewer files than trainers, "
        "plain text is cut into parts.",
    )
