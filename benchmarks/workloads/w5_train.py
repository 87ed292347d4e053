"""Training from files by `QueueDataset`, compared with training from arrays in memory.

    python -m benchmarks.w5_feed --train [--threads N] [--rounds N]

The W7 network trains on batches of 512; a first pass over the files yields the arrays. Each round
trains on all batches from files, then from memory. `share` is the median ratio of speeds within a
round. `share_cpu` is the ratio of CPU time of the whole process, with reading threads: the ratio of
speeds on a host without a free core. `share_cpu_trainer` counts the training thread only.
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
from benchmarks.measuring import harness
from benchmarks.workloads import w7_executors, w7_model
from benchmarks.workloads.ctr_data import DENSE, SLOTS, w1_batches
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
    """Seconds on all batches, and CPU seconds of the process and of the training thread."""

    wall: float
    cpu: float
    trainer_cpu: float


def run(args: argparse.Namespace) -> harness.Figures:
    keep_freed_memory()  # trainer processes set it, too
    program, loss = w7_model.build(ragged=False)
    executor = w7_executors.alone_executor(program, loss)
    with tempfile.TemporaryDirectory(prefix="psrt-w5-") as folder, harness.Steal() as steal:
        files = written(Path(folder))
        dataset = psrt.QueueDataset(READ_SLOTS, files=files, batch_size=BATCH, threads=args.threads)
        arrays = list(dataset.batches())
        train(executor, arrays)  # loads kernels
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
    """Write the batches of W1 as MultiSlot text, near-equal numbers in each file."""
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
    """The median of the ratios of pairs."""
    return round(statistics.median(one / other for one, other in rounds), 3)
