"""Seconds to restore and to load cuts, and to read their files."""

from __future__ import annotations

import argparse
import mmap
import os
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.cut_files import PLAIN_BYTES, forget
from benchmarks.measuring import harness
from psrt.core import specs
from psrt.core.clock import MonotonicClock
from psrt.core.threads import CrashReport
from psrt.pserver.checkpoints import SavedCut, find_cut
from psrt.pserver.loading import TableLoad, TableLoader
from psrt.pserver.tables import TableRegistry
from psrt.storage.local_directory import LocalDirectory

TICK_S, WAIT_S = 0.01, 600.0
"""Resolution of CPU seconds, and the longest wait for a load."""


def restored(cut: SavedCut, spec: specs.SparseTableSpec, args: argparse.Namespace) -> float:
    """Seconds to restore the table of a cut on one thread."""
    tables, began = TableRegistry(args.stripes), time.perf_counter()
    tables.register([spec], prepare=cut.restore_into)
    return seconds_until_all(tables, began, args)


def seconds_until_all(tables: TableRegistry, began: float, args: argparse.Namespace) -> float:
    """Seconds since `began`; ends the benchmark if a row is missing."""
    seconds = time.perf_counter() - began
    (table,) = tables.all_sparse()
    if table.rows != args.rows:
        raise SystemExit(f"{table.rows} of {args.rows} rows are there")
    return seconds


def best_loads(
    folder: Path, chain: SavedCut, spec: specs.SparseTableSpec, args: argparse.Namespace
) -> harness.Figures:
    full = find_cut(LocalDirectory(folder), "1")
    files = [folder / file["name"] for file in chain.files]
    acts = {
        "restore_full": lambda: restored(full, spec, args),
        "restore_chain": lambda: restored(chain, spec, args),
        "load_chain": lambda: loaded(chain, spec, args),
        "read_plain": lambda: cold(files, lambda: read_plainly(files)),
        "load": lambda: cold(files, lambda: loaded(chain, spec, args)),
        "read_new": lambda: cold(files, lambda: read_into_new(files)),
    }
    rounds = [{name: timed(act) for name, act in acts.items()} for _ in range(args.rounds)]
    best = {name: min(each[name] for each in rounds) for name in acts}
    plain = [each["read_plain"].seconds / each["load"].seconds for each in rounds]
    new = [each["read_new"].seconds / each["load"].seconds for each in rounds]
    return {name: round(each.seconds, 3) for name, each in best.items()} | {
        "load_cpu": round(best["load_chain"].cpu_s, 3),
        "load_system": round(best["load_chain"].system_s, 3),
        "load_share": round(statistics.median(plain), 3),
        "load_shares": [round(share, 3) for share in plain],
        "new_share": round(statistics.median(new), 3),
        "new_shares": [round(share, 3) for share in new],
        "new_cpu_share": round(best["read_new"].cpu_s / max(best["load"].cpu_s, TICK_S), 3),
        "chain_mb": round(sum(path.stat().st_size for path in files) / 1e6, 1),
    }


class Timed(NamedTuple):
    """Seconds of an act, and CPU seconds of this process meanwhile."""

    seconds: float
    cpu_s: float
    system_s: float


def timed(act: Callable[[], float]) -> Timed:
    """`act` returns its seconds."""
    before, seconds, after = os.times(), act(), os.times()
    system_s = after.system - before.system
    return Timed(seconds, after.user - before.user + system_s, system_s)


def loaded(cut: SavedCut, spec: specs.SparseTableSpec, args: argparse.Namespace) -> float:
    """Seconds to load the table of a cut on several threads."""
    tables, loads, done = TableRegistry(args.stripes), list[TableLoad](), threading.Event()
    crashes = CrashReport()
    loader = TableLoader(tables, args.threads, MonotonicClock(), crashes, print, done.set)
    began = time.perf_counter()
    prepare = lambda table: loads.append(TableLoad(table, cut))  # noqa: E731
    tables.register([spec], are_loaded=False, prepare=prepare)
    loader.load(loads)
    done.wait(WAIT_S)
    return seconds_until_all(tables, began, args)


def read_plainly(files: Sequence[Path]) -> float:
    began, block = time.perf_counter(), bytearray(PLAIN_BYTES)
    for path in files:
        with path.open("rb", buffering=0) as file:
            while file.readinto(block):
                pass
    return time.perf_counter() - began


def read_into_new(files: Sequence[Path]) -> float:
    size = sum(path.stat().st_size for path in files)
    began = time.perf_counter()
    memory, at = mmap.mmap(-1, size), 0
    for path in files:
        with path.open("rb", buffering=0) as file:
            while count := file.readinto(memoryview(memory)[at : at + PLAIN_BYTES]):
                at += count
    return time.perf_counter() - began


def cold(files: Sequence[Path], act: Callable[[], float]) -> float:
    for path in files:
        forget(path)
    return act()
