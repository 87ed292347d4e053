"""Speed of freezes, restores and deltas, and the waits of pushes meanwhile.

python -m benchmarks.frozen_tables [--rows 5000000] [--width 16] [--threads 2] [--stripes 4]

    freeze_ms         from the call until updates go on, which includes waiting for those under way
    walk              rows/s and MB/s of the pages; `alone` without pushes
    hold              how long the walk held the lock of a stripe at a time
    push              pushes of 13,312 rows: number a second, median and longest wait (ms), without
                      a freeze, during the walk, and while changes are tracked
    saved_mb          copies that updates made during the walk
    restore           rows/s into an empty table, by one thread
    delta             after 1 % of the rows have changed: rows, and milliseconds of its walk
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import statistics
import threading
import time
from collections.abc import Iterator
from typing import Any

from benchmarks.measuring import harness

os.environ.update(harness.ONE_THREAD)

import numpy as np

from psrt.core import specs
from psrt.core.allocator import keep_freed_memory
from psrt.kernels.jit import warm_up
from psrt.pserver.tables.sparse_table import SparseTable

BATCH, CHUNK = 13_312, 100_000


def run(args: argparse.Namespace) -> harness.Figures:
    keep_freed_memory()
    warm_up(["pserver", "freeze"])
    table = filled(args)
    pushers = [Pusher(table, seed, args.rows) for seed in range(args.threads)]
    figures: harness.Figures = {"alone": walk(table), "restore": restored(table, args)}
    with pushing(pushers):
        time.sleep(args.seconds)
    push = {"without": waits(pushers)}
    with pushing(pushers):
        figures["walk"] = walk(table)
    push["during"] = waits(pushers)
    table.track_changes()
    with pushing(pushers):
        time.sleep(args.seconds)
    push["tracked"] = waits(pushers)
    return figures | {"push": push, "delta": delta(table, args.rows)}


def filled(args: argparse.Namespace) -> SparseTable:
    spec = specs.SparseTableSpec(
        *("emb", args.width, specs.Uniform(-0.1, 0.1), specs.Adagrad(), specs.ConstantRate(0.1), 7)
    )
    table = SparseTable(spec, args.stripes)
    gradients = np.ones((CHUNK, args.width), np.float32)
    for first in range(0, args.rows, CHUNK):
        ids = np.arange(first, min(first + CHUNK, args.rows))
        table.apply(table.route(ids), gradients[: len(ids)], 0.1)
    return table


class Pusher:
    """A thread that pushes batches of random rows; `waits` are the seconds of each."""

    def __init__(self, table: SparseTable, seed: int, rows: int) -> None:
        rng = np.random.default_rng(seed)
        batches = [np.unique(rng.integers(0, rows, BATCH)) for _ in range(64)]
        self._batches = [
            (ids, rng.standard_normal((len(ids), table.spec.width), np.float32)) for ids in batches
        ]
        self._table, self.waits, self.seconds = table, list[float](), 0.0
        self.stopped = threading.Event()

    def run(self) -> None:
        self.waits, started = [], time.perf_counter()
        for ids, gradients in itertools.cycle(self._batches):
            if self.stopped.is_set():
                break
            began = time.perf_counter()
            self._table.apply(self._table.route(ids), gradients, 0.1)
            self.waits.append(time.perf_counter() - began)
        self.seconds = time.perf_counter() - started


@contextlib.contextmanager
def pushing(pushers: list[Pusher]) -> Iterator[None]:
    threads = [threading.Thread(target=each.run) for each in pushers]
    for each, thread in zip(pushers, threads, strict=True):
        each.stopped.clear()
        thread.start()
    yield
    for each, thread in zip(pushers, threads, strict=True):
        each.stopped.set()
        thread.join()


def waits(pushers: list[Pusher]) -> harness.Figures:
    found = [wait * 1e3 for each in pushers for wait in each.waits]
    return {
        "per_s": round(sum(len(each.waits) / each.seconds for each in pushers), 1),
        "median_ms": round(statistics.median(found), 2),
        "p99_ms": round(float(np.percentile(found, 99)), 2),
        "longest_ms": round(max(found), 2),
    }


def walk(table: SparseTable) -> harness.Figures:
    """Figures of a freeze whose pages are dropped, as a writer drops them."""
    began = time.perf_counter()
    frozen = table.freeze()
    froze_s = time.perf_counter() - began
    holds = [Timed(stripe._lock) for stripe in frozen._stripes]
    for stripe, lock in zip(frozen._stripes, holds, strict=True):
        stripe._lock = lock
    began = time.perf_counter()
    rows = bytes_ = 0
    for page in frozen.pages():
        rows += len(page["rows"])
        bytes_ += page["rows"].nbytes
    took_s, saved = time.perf_counter() - began, frozen.saved_rows
    frozen.close()
    return {
        "freeze_ms": round(froze_s * 1e3, 2),
        "rows": rows,
        "rows_per_s": round(rows / took_s),
        "mb_per_s": round(bytes_ / took_s / 1e6),
        "hold": held([hold for each in holds for hold in each.holds]),
        "saved_mb": round(saved * table.layout.row_bytes / 1e6, 1),
    }


def held(holds: list[tuple[float, float]]) -> harness.Figures:
    seconds, cpu_seconds = (np.array(each) * 1e3 for each in zip(*holds, strict=True))
    return {
        "median_ms": round(float(np.median(seconds)), 3),
        "p99_ms": round(float(np.percentile(seconds, 99)), 3),
        "longest_ms": round(float(seconds.max()), 2),
        "longest_cpu_ms": round(float(cpu_seconds.max()), 3),
    }


class Timed:
    """A lock that records how long it is held, in seconds and in seconds of CPU time."""

    def __init__(self, lock: Any) -> None:
        self._lock, self.holds = lock, list[tuple[float, float]]()

    def __enter__(self) -> None:
        self._lock.__enter__()
        self._since = time.perf_counter(), time.thread_time()

    def __exit__(self, *error: object) -> None:
        seconds, cpu_seconds = self._since
        self.holds.append((time.perf_counter() - seconds, time.thread_time() - cpu_seconds))
        self._lock.__exit__(*error)


def restored(table: SparseTable, args: argparse.Namespace) -> harness.Figures:
    with table.freeze() as frozen:
        pages = list(frozen.pages())
    empty = filled(argparse.Namespace(**vars(args) | {"rows": 0}))
    began = time.perf_counter()
    empty.restore([(frozen.meta, pages)])
    return {"rows": empty.rows, "rows_per_s": round(empty.rows / (time.perf_counter() - began))}


def delta(table: SparseTable, rows: int) -> harness.Figures:
    with table.freeze() as frozen:
        frozen.confirm()
    ids = np.random.default_rng(9).permutation(rows)[: rows // 100]
    table.apply(table.route(ids), np.ones((len(ids), table.spec.width), np.float32), 0.1)
    began = time.perf_counter()
    with table.freeze(is_delta=True) as frozen:
        count = sum(len(page["rows"]) for page in frozen.pages())
    return {"rows": count, "ms": round((time.perf_counter() - began) * 1e3, 2)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--stripes", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=3.0)
    harness.main(parser, run)
