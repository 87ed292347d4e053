"""Training fed by `QueueDataset`, beside the same from arrays that are in memory already.

python -m benchmarks.w5_feed --train [--threads N] [--rounds N]

The W7 network on batches of 512; the arrays are what a first pass over the files gave. Each round
trains on all of them from files and from memory, in turns. `share` is the median of the ratio of
speeds within a round. `share_cpu` is that of CPU time of the whole process, reading threads and
all: what is left of the speed on a host with no core to spare; `share_cpu_trainer` is that of the
thread that trains.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

import psrt
from benchmarks import harness, w7_executor, w7_model
from benchmarks.ctr_data import DENSE, SLOTS, w1_batches
from psrt.core.allocator import keep_freed_memory
from psrt.data.slots import Batch, Slot
from psrt.kernels.text.lines import format_rows, row_bytes

BATCHES, BATCH, FILES = 96, 512, 2
READ_SLOTS = (
    Slot("click", "float", 1),
    Slot("dense", "float", DENSE),
    *(Slot(f"C{i}", "uint64", 1) for i in range(SLOTS)),
)


class Spent(NamedTuple):
    """On all batches: seconds, CPU seconds of the process, and of the thread that trains."""

    wall: float
    cpu: float
    trainer_cpu: float


def run(args: argparse.Namespace) -> harness.Figures:
    keep_freed_memory()  # as every trainer process does
    program, loss = w7_model.build(ragged=False)
    executor = w7_executor.alone_executor(program, loss)
    with tempfile.TemporaryDirectory(prefix="psrt-w5-") as folder, harness.Steal() as steal:
        files = written(Path(folder))
        dataset = psrt.QueueDataset(READ_SLOTS, files=files, batch_size=BATCH, threads=args.threads)
        arrays = list(dataset.batches())
        train(executor, arrays)  # kernels are loaded
        rounds = [
            (train(executor, dataset.batches()), train(executor, arrays))
            for _ in range(args.rounds)
        ]
    from_files, from_memory = zip(*rounds, strict=True)
    examples = BATCHES * BATCH
    return {
        "workload": "W5, CTR-DNN trained from files and from memory",
        "examples_per_s_files": round(examples / min(spent.wall for spent in from_files)),
        "examples_per_s_memory": round(examples / min(spent.wall for spent in from_memory)),
        "share": share([(memory.wall, files.wall) for files, memory in rounds]),
        "share_rounds": [round(memory.wall / files.wall, 3) for files, memory in rounds],
        "share_cpu": share([(memory.cpu, files.cpu) for files, memory in rounds]),
        "share_cpu_trainer": share([(m.trainer_cpu, f.trainer_cpu) for f, m in rounds]),
        "stolen_cpu": round(steal.share or 0.0, 3),
    }


def written(folder: Path) -> list[Path]:
    """The batches of W1 as MultiSlot text, about as many in each file."""
    paths = [folder / f"part-{file}" for file in range(FILES)]
    batches = w1_batches(0, BATCHES)
    for file, path in enumerate(paths):
        path.write_bytes(b"".join(text_of(*batch) for batch in batches[file::FILES]))
    return paths


def text_of(ids: np.ndarray, dense: np.ndarray, click: np.ndarray) -> bytes:
    out = np.empty(len(ids) * row_bytes(DENSE, SLOTS), np.uint8)
    ends = np.empty(len(ids), np.int64)
    format_rows(click[:, 0].astype(np.uint8), dense, ids, out, ends)
    return out[: ends[-1]].tobytes()


def train(executor: psrt.Executor, batches: Iterable[Batch]) -> Spent:
    started = time.perf_counter(), time.process_time(), time.thread_time()
    for batch in batches:
        executor.run(batch, roles=w7_model.TRAIN)
    ended = time.perf_counter(), time.process_time(), time.thread_time()
    return Spent(*(after - before for before, after in zip(started, ended, strict=True)))


def share(rounds: list[tuple[float, float]]) -> float:
    """The median of ratios."""
    return round(statistics.median(one / other for one, other in rounds), 3)
