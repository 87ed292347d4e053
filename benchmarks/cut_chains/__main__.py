"""Full and incremental cuts of one pserver against plain files; restores, and a chain merged.

    python -m benchmarks.cut_chains [--rows 5000000] [--width 16] [--changed 0.01] [--cuts 4]

writes full cuts of a table with Adagrad's state, and as many bytes plainly, in turn; then a chain:
incremental cuts after each of which so many rows have changed. All go to `--directory`, synced
(fsync). Nothing else runs meanwhile.

    full, delta       MB (10⁶ bytes), seconds until the part is durable, CPU seconds of them, and
                      milliseconds of the freeze
    write_plain       seconds to write and sync the bytes of a full cut plainly; `write_share` is
                      the part of that rate which a cut reaches
    size_ratio        bytes of an incremental cut ÷ those of the full one; also time_ratio
    restore_full      seconds to restore the full cut into an empty table, on one thread
    restore_chain     the same for the whole chain, and rows
    load_chain        the same by `--threads` threads, as a pserver does that begins with a cut;
                      also CPU seconds, of which `load_system` are those of the system
    read_plain, load  files dropped from the cache of the disk: seconds to read them plainly and to
                      load them; `load_share` is the part of the plain rate that loading reaches
    read_new          the same files read plainly into new memory, a byte in and a byte out
    new_share         the part of the rate of `read_new` that loading reaches. This is the fair one:
                      a table that is restored is new memory, and the system clears each page of it
                      before the first byte is there. `read_plain` reads into one buffer of 4 MiB
                      again and again, which stays in a cache of the processor; where files are in
                      memory of the host of a virtual machine, as on ours, no program can fill
                      new memory as fast. Both shares are printed
    new_cpu_share     CPU seconds of `read_new` ÷ those of `load`, which also checks each byte and
                      enters each id in an index: steadier than shares of seconds on a busy host
    compact           seconds to merge the chain into one full cut, and MB

Acts take turns for `--rounds` rounds. Seconds are the best of these, shares the median, and
`…_shares` all of them.
"""

from __future__ import annotations

import argparse
import mmap
import os
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.cut_files import PLAIN_BYTES, forget, write_plain
from benchmarks.measuring import harness

os.environ.update(harness.ONE_THREAD)

import numpy as np

from psrt.coordinator.part_chain import PartOutcome
from psrt.coordinator.retention import Retention
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

TICK_S = 0.01
"""Resolution of CPU seconds."""

ENDPOINT, CHUNK, WAIT_S = "here:1", 100_000, 600.0


class OnePserver:
    """Tables of one pserver and its cuts, without trainers."""

    def __init__(self, folder: Path, tables: TableRegistry, full_every: int) -> None:
        crashes = CrashReport()
        settings = Settings(
            LocalDirectory(folder), retention=Retention(keep=1), full_every=full_every
        )
        self.tables = tables
        (self.table,) = tables.all_sparse()
        upkeep = Upkeep(self.tables.all_sparse, Meters())
        self._cutting = Cutting(settings, self.tables, upkeep, crashes, self._reported)
        self._cuts = Coordination(settings, [ENDPOINT], MonotonicClock(), lambda: 0, crashes)
        self._written = threading.Event()

    def cut(self) -> harness.Figures:
        """Make a cut; returns its figures."""
        self._written.clear()
        done = self._cuts.request()
        began, cpu_s = time.perf_counter(), time.process_time()
        self._cutting.freeze(self._cuts.proposed, {**FACTS, "participants": []})
        froze_s = time.perf_counter() - began
        self._written.wait(WAIT_S)
        took_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu_s
        done.future.result(WAIT_S)
        self._cutting.wait(WAIT_S)
        return {"seconds": took_s, "cpu_s": cpu_s, "freeze_ms": froze_s * 1e3}

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
    tables, rng = TableRegistry(args.stripes), np.random.default_rng(1)
    tables.register([spec])
    change(tables, np.arange(args.rows))
    figures = full_cuts(folder / "full", tables, args)
    folder /= "chain"
    pserver = OnePserver(folder, tables, full_every=1 << 20)
    full = pserver.cut() | {"mb": size_mb(folder, 1)}
    deltas = []
    for number in range(2, args.cuts + 2):
        change(tables, rng.permutation(args.rows)[: int(args.rows * args.changed)])
        deltas.append(pserver.cut() | {"mb": size_mb(folder, number)})
    pserver.close()
    delta = {key: statistics.median(each[key] for each in deltas) for key in full}
    chain = find_cut(LocalDirectory(folder), "latest")
    figures = {
        "rows": args.rows,
        "changed": args.changed,
        "cuts": args.cuts,
        "rounds": args.rounds,
        **figures,
        "delta": rounded(delta),
        "size_ratio": round(delta["mb"] / full["mb"], 4),
        "time_ratio": round(delta["seconds"] / figures["full"]["seconds"], 4),
        "threads": args.threads,
        **best_loads(folder, chain, spec, args),
    }
    began = time.perf_counter()
    compact(chain)
    seconds = time.perf_counter() - began
    merged = rounded({"seconds": seconds, "mb": size_mb(folder, chain.number)})
    return figures | {"compact": merged}


def full_cuts(folder: Path, tables: TableRegistry, args: argparse.Namespace) -> harness.Figures:
    """Full cuts, and plain files of as many bytes, in turn."""
    pserver, cuts, plain = OnePserver(folder, tables, full_every=1), [], []
    cuts.append(pserver.cut())  # of no round: it makes memory that later ones have
    mb = size_mb(folder, 1)
    for number in range(args.rounds):
        acts = [
            lambda: cuts.append(pserver.cut()),
            lambda: plain.append(written_plainly(folder / "plain", int(mb * 1e6))),
        ]
        for act in acts if number % 2 else reversed(acts):
            act()
    pserver.close()
    shutil.rmtree(folder)
    shares = [bare / cut["seconds"] for bare, cut in zip(plain, cuts[1:], strict=True)]
    best = min(cuts[1:], key=lambda cut: cut["seconds"])
    return {
        "full": rounded(best | {"mb": mb}),
        "write_plain": round(min(plain), 3),
        "write_share": round(statistics.median(shares), 3),
        "write_shares": [round(share, 3) for share in shares],
    }


def written_plainly(path: Path, size_bytes: int) -> float:
    began = time.perf_counter()
    write_plain(path, size_bytes)
    seconds = time.perf_counter() - began
    path.unlink()
    return seconds


def change(tables: TableRegistry, ids: np.ndarray) -> None:
    (table,) = tables.all_sparse()
    gradients = np.ones((CHUNK, table.spec.width), np.float32)
    for first in range(0, len(ids), CHUNK):
        part = np.sort(ids[first : first + CHUNK])
        table.apply(table.route(part), gradients[: len(part)], 0.1)


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
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--directory", default=".")
    harness.main(parser, run)
