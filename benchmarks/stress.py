"""16 trainers at one pserver for ten minutes, with every sum checked at the end.

    python -m benchmarks.stress [--seconds 600] [--trainers 16]

Each trainer is a thread with a client of its own. It pushes gradients of whole numbers to a dense
parameter and two sparse tables: one of scattered ids, one of few hot ids, repeated within a push.
It pulls them, too, and reconnects as a new incarnation every fifty steps. Every fourth trainer uses
gRPC, the others the stream. Under SGD with rate 1 all sums are exact in float32 in any order. So
the final tables must equal the sums that each thread keeps in numpy.

    differences      numbers that differ (the exit code is then 1)
    torn_reads       pulled rows or blocks with half an update. Column c of every gradient is c + 1
                     times column 0, so this holds for every row
    samples          of the daemon, over time: [second, resident MiB, threads, open files]
    resident_growth  resident memory at the end ÷ that after a tenth of the time
    resident_mib_per_minute  slope of resident memory over the second half, by least squares
    threads, open_files   minimum and maximum after a tenth of the time

The daemon runs with PYTHONFAULTHANDLER: a crash prints its stacks.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import sys
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from benchmarks.measuring import harness

os.environ.update(harness.ONE_THREAD)

import numpy as np

from benchmarks.measuring import processes
from benchmarks.workloads.trainers import Who, connected, push, sparse_table
from psrt.communicator.requests.pserver_group import PserverGroup
from psrt.core.specs import Constant, ConstantRate, Sgd
from psrt.core.tensors import SelectedRows
from psrt.core.types import F32, I64
from psrt.graph.program import Parameter
from psrt.kernels.jit import warm_up

DENSE, DENSE_SIZE = "dense", 50_000
STEPS_PER_STAY, SAMPLES, LARGEST_EXACT = 50, 60, 1 << 24
SCATTER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Rows:
    """A sparse table with the ids in use; a push has `batch` of them."""

    name: str
    width: int
    ids: I64
    batch: int


def _scattered(count: int) -> I64:
    return (np.arange(count, dtype=np.uint64) * SCATTER).view(np.int64)


TABLES = (Rows("wide", 16, _scattered(50_000), 2_000), Rows("hot", 5, _scattered(64), 300))


@dataclass
class Sums:
    """Sums of all pushes of one trainer, by table and row, and counts of its events."""

    rows: dict[str, I64] = field(
        default_factory=lambda: {table.name: np.zeros(len(table.ids), np.int64) for table in TABLES}
    )
    dense: int = 0
    seen: Counter[str] = field(default_factory=Counter)


def parameters() -> list[Parameter]:
    sparse = [
        sparse_table(table.name, len(table.ids), table.width, initializer=Constant(0.0))
        for table in TABLES
    ]
    dense = Parameter(
        DENSE,
        (DENSE_SIZE,),
        Constant(0.0),
        seed=0,
        optimizer=Sgd(),
        learning_rate=ConstantRate(1.0),
    )
    return [*sparse, dense]


@functools.cache
def multiples(count: int) -> F32:
    """Factors of the columns 0, 1, … of a gradient: 1 to 16, then again from 1."""
    found: F32 = (1 + np.arange(count) % 16).astype(np.float32)
    found.flags.writeable = False
    return found


# --- a trainer ------------------------------------------------------------------------------------


def life(endpoint: str, who: Who, ends: float) -> Sums:
    """Connect again and again until `ends`; returns the sums of all pushes."""
    sums, rng, incarnation = Sums(), np.random.default_rng(who.number), 1
    while time.monotonic() < ends:
        stay = Who(who.number, who.trainers, who.carrier, incarnation)
        with connected(endpoint, parameters(), stay) as pservers:
            for _ in range(STEPS_PER_STAY):
                push_once(pservers, rng, sums)
                pull_once(pservers, rng, sums)
                if time.monotonic() >= ends:
                    break
        incarnation += 1
        sums.seen["stays"] += 1
    return sums


def push_once(pservers: PserverGroup, rng: np.random.Generator, sums: Sums) -> None:
    gradients: dict[str, SelectedRows | F32] = {}
    for table in TABLES:
        positions = rng.integers(0, len(table.ids), table.batch)
        amounts = rng.integers(-3, 4, table.batch)
        np.add.at(sums.rows[table.name], positions, amounts)
        values = amounts[:, None].astype(np.float32) * multiples(table.width)
        gradients[table.name] = SelectedRows(table.ids[positions], values)
        sums.seen["rows_pushed"] += table.batch
    amount = int(rng.integers(-3, 4))
    sums.dense += amount
    gradients[DENSE] = np.float32(amount) * multiples(DENSE_SIZE)
    push(pservers, gradients)
    sums.seen["pushes"] += 1


def pull_once(pservers: PserverGroup, rng: np.random.Generator, sums: Sums) -> None:
    table = TABLES[int(rng.integers(len(TABLES)))]
    ids = np.unique(table.ids[rng.integers(0, len(table.ids), table.batch)])
    rows, _ = pservers.pull_rows({table.name: ids})
    dense: F32 = np.empty(DENSE_SIZE, np.float32)
    pservers.pull_dense({DENSE: dense})
    sums.seen["torn_reads"] += torn(rows[table.name]) + torn(dense[None])
    sums.seen["pulls"] += 2


def torn(rows: F32) -> int:
    """The number of rows (n, d) whose columns are not one number times `multiples`."""
    whole = rows[:, :1] * multiples(rows.shape[1]) == rows
    return int(np.count_nonzero(~whole.all(axis=1)))


# --- all of them ----------------------------------------------------------------------------------


def run(args: argparse.Namespace) -> harness.Figures:
    warm_up(["trainer"])
    with harness.daemons(1) as (daemon,), ThreadPoolExecutor(args.trainers) as pool:
        started = time.monotonic()
        ends = started + args.seconds
        lives = [pool.submit(life, daemon.endpoint, who, ends) for who in trainers(args.trainers)]
        samples = sampled(daemon.pid, started, args.seconds, lives)
        found = [each.result() for each in lives]
        checker = Who(0, args.trainers, incarnation=1 << 40)
        with connected(daemon.endpoint, parameters(), checker) as pservers:
            differences = differences_of(pservers, found)
    seen = sum((sums.seen for sums in found), Counter[str]())
    return {
        "workload": "stress",
        "trainers": args.trainers,
        "seconds": args.seconds,
        "differences": differences,
        **{name: seen[name] for name in ("torn_reads", "pushes", "rows_pushed", "pulls", "stays")},
        **steadiness(samples),
        "samples": samples,
    }


def trainers(count: int) -> list[Who]:
    return [Who(number, count, "grpc" if number % 4 == 3 else "stream") for number in range(count)]


def sampled(
    pid: int, started: float, seconds: float, lives: list[Future[Sums]]
) -> list[list[float]]:
    """Samples of the daemon, `SAMPLES` over the time; the failure of a trainer ends them."""
    samples = []
    while (second := time.monotonic() - started) < seconds:
        resident_mib = processes.resident_bytes(pid) / processes.MIB
        counts = processes.threads(pid), processes.open_files(pid)
        samples.append([round(second, 1), round(resident_mib, 1), *counts])
        wait(lives, timeout=seconds / SAMPLES, return_when="FIRST_EXCEPTION")
        if any(each.done() and each.exception() for each in lives):
            break
    return samples


def steadiness(samples: list[list[float]]) -> harness.Figures:
    """Growth and ranges of the daemon's resources after a tenth of the time."""
    later = samples[len(samples) // 10 :]
    _, resident, threads, open_files = zip(*later, strict=True)
    seconds, mib = np.array(samples[len(samples) // 2 :])[:, :2].T
    return {
        "resident_mib": resident[-1],
        "resident_growth": round(resident[-1] / resident[0], 3),
        "resident_mib_per_minute": round(60 * float(np.polyfit(seconds, mib, 1)[0]), 2),
        "threads": [min(threads), max(threads)],
        "open_files": [min(open_files), max(open_files)],
    }


def differences_of(pservers: PserverGroup, found: list[Sums]) -> int:
    """The number of values in the final tables that differ from minus the sums of gradients."""
    dense: F32 = np.empty(DENSE_SIZE, np.float32)
    pservers.pull_dense({DENSE: dense})
    expected = -multiples(DENSE_SIZE) * exact(np.array(sum(sums.dense for sums in found)))
    differences = int(np.count_nonzero(dense != expected))
    for table in TABLES:
        rows, _ = pservers.pull_rows({table.name: table.ids})
        whole = exact(sum((sums.rows[table.name] for sums in found), np.zeros(1, np.int64)))
        expected = -whole[:, None] * multiples(table.width)
        differences += int(np.count_nonzero(rows[table.name] != expected))
    return differences


def exact(sums: I64) -> F32:
    """Convert to float32; exits if the largest multiple would be rounded."""
    if np.abs(sums).max() * multiples(16)[-1] >= LARGEST_EXACT:
        raise SystemExit("a sum left the whole numbers of float32; run for a shorter time")
    return sums.astype(np.float32)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--trainers", type=int, default=16)
    args = parser.parse_args()
    os.environ["PYTHONFAULTHANDLER"] = "1"  # the daemon inherits it
    figures = run(args)
    print(json.dumps(figures))
    sys.exit(1 if figures["differences"] or figures["torn_reads"] else 0)
