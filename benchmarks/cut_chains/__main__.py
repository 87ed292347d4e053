"""Full and incremental cuts of one pserver: bytes and seconds, restores, and a chain merged.

    python -m benchmarks.cut_chains [--rows 5000000] [--width 16] [--changed 0.01] [--cuts 4]

writes a full cut of a table with Adagrad's state, then incremental cuts after each of which so many
rows have changed, all to `--directory`, synced (fsync). Nothing else runs meanwhile.

    full, delta       MB (10⁶ bytes), seconds until the part is durable, milliseconds of the freeze
    size_ratio        bytes of an incremental cut ÷ those of the full one; also time_ratio
    restore_full      seconds to restore the full cut into an empty table, on one thread
    restore_chain     the same for the whole chain, and rows
    load_chain        the same by `--threads` threads, as a pserver does that begins with a cut
    cold              files dropped from the cache of the disk: seconds to read them plainly and to
                      load them, and the part that loading reaches of the plain rate
    The last four are the best of `--rounds`, which take turns.
    compact           seconds to merge the chain into one full cut, and MB
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.cut_files import PLAIN_BYTES, forget
from benchmarks.measuring import harness

os.environ.update(harness.ONE_THREAD)

import numpy as np

from psrt.coordinator.part_chain import PartOutcome
from psrt.core import specs
from psrt.core.allocator import keep_freed_memory
from psrt.core.clock import MonotonicClock
from psrt.core.errors import PsrtError
from psrt.core.threads import CrashReport
from psrt.kernels.jit import warm_up
from psrt.pserver.checkpoints import Coordination, Cutting, SavedCut, Settings, compact, find_cut
from psrt.pserver.eviction import Upkeep
from psrt.pserver.loading import TableLoad, TableLoader
from psrt.pserver.tables import TableRegistry
from psrt.pserver.tables.meters import Meters
from psrt.storage.local_directory import LocalDirectory

ENDPOINT, CHUNK, WAIT_S = "here:1", 100_000, 600.0


class OnePserver:
    """Tables of one pserver and its cuts, without trainers."""

    def __init__(self, folder: Path, spec: specs.SparseTableSpec, stripes: int) -> None:
        crashes, settings = CrashReport(), Settings(LocalDirectory(folder), full_every=1 << 20)
        self.tables = TableRegistry(stripes)
        self.tables.register([spec])
        self.table = self.tables.sparse(spec.name)
        upkeep = Upkeep(self.tables.all_sparse, Meters())
        self._cutting = Cutting(settings, self.tables, upkeep, crashes, self._reported)
        self._cuts = Coordination(settings, [ENDPOINT], MonotonicClock(), lambda: 0, crashes)
        self._written = threading.Event()

    def cut(self) -> harness.Figures:
        """Make a cut; returns its figures."""
        self._written.clear()
        done = self._cuts.request()
        began = time.perf_counter()
        self._cutting.freeze(self._cuts.proposed, {**FACTS, "participants": []})
        froze_s = time.perf_counter() - began
        self._written.wait(WAIT_S)
        took_s = time.perf_counter() - began
        done.future.result(WAIT_S)
        self._cutting.wait(WAIT_S)
        return {"seconds": took_s, "freeze_ms": froze_s * 1e3}

    def close(self) -> None:
        self._cuts.stop()

    def _reported(self, number: int, record: str, problem: str) -> PartOutcome:
        self._written.set()
        try:
            self._cuts.part(number, ENDPOINT, record, problem).future.result(WAIT_S)
        except PsrtError:
            return PartOutcome.GIVEN_UP
        return PartOutcome.COMPLETE


FACTS = {"job": {"id": "benchmark", "trainers": 0, "mode": {"kind": "Sync"}}, "round": 0, "step": 0}


def run(args: argparse.Namespace) -> harness.Figures:
    keep_freed_memory()
    warm_up(["pserver", "freeze"])
    with tempfile.TemporaryDirectory(dir=args.directory) as folder:
        return measured(Path(folder), args)


def measured(folder: Path, args: argparse.Namespace) -> harness.Figures:
    spec = specs.SparseTableSpec(
        *("emb", args.width, specs.Uniform(-0.1, 0.1), specs.Adagrad(), specs.ConstantRate(0.1), 7)
    )
    pserver, rng = OnePserver(folder, spec, args.stripes), np.random.default_rng(1)
    change(pserver, np.arange(args.rows))
    full = pserver.cut() | {"mb": size_mb(folder, 1)}
    deltas = []
    for number in range(2, args.cuts + 2):
        change(pserver, rng.permutation(args.rows)[: int(args.rows * args.changed)])
        deltas.append(pserver.cut() | {"mb": size_mb(folder, number)})
    pserver.close()
    delta = {key: statistics.median(each[key] for each in deltas) for key in full}
    chain = find_cut(LocalDirectory(folder), "latest")
    figures = {
        "rows": args.rows,
        "changed": args.changed,
        "cuts": args.cuts,
        "full": rounded(full),
        "delta": rounded(delta),
        "size_ratio": round(delta["mb"] / full["mb"], 4),
        "time_ratio": round(delta["seconds"] / full["seconds"], 4),
        "threads": args.threads,
        **best_loads(folder, chain, spec, args),
    }
    began = time.perf_counter()
    compact(chain)
    seconds = time.perf_counter() - began
    merged = rounded({"seconds": seconds, "mb": size_mb(folder, chain.number)})
    return figures | {"compact": merged}


def change(pserver: OnePserver, ids: np.ndarray) -> None:
    gradients = np.ones((CHUNK, pserver.table.spec.width), np.float32)
    for first in range(0, len(ids), CHUNK):
        part = np.sort(ids[first : first + CHUNK])
        pserver.table.apply(pserver.table.route(part), gradients[: len(part)], 0.1)


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
        "read_cold": lambda: cold(files, lambda: read_plainly(files)),
        "load_cold": lambda: cold(files, lambda: loaded(chain, spec, args)),
    }
    rounds = [{name: act() for name, act in acts.items()} for _ in range(args.rounds)]
    best = {name: min(each[name] for each in rounds) for name in acts}
    share = best["read_cold"] / best["load_cold"]
    return {name: round(seconds, 3) for name, seconds in best.items()} | {
        "cold_share": round(share, 3),
        "chain_mb": round(sum(path.stat().st_size for path in files) / 1e6, 1),
    }


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


def cold(files: Sequence[Path], act: Callable[[], float]) -> float:
    for path in files:
        forget(path)
    return act()


def size_mb(folder: Path, number: int) -> float:
    return sum(p.stat().st_size for p in (folder / f"cut-{number:08d}").rglob("*.arrays")) / 1e6


def rounded(figures: harness.Figures) -> harness.Figures:
    return {key: round(value, 3) for key, value in figures.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--changed", type=float, default=0.01, help="part of the rows, per cut")
    parser.add_argument("--cuts", type=int, default=4, help="incremental cuts")
    parser.add_argument("--stripes", type=int, default=4)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--directory", default=".")
    harness.main(parser, run)
