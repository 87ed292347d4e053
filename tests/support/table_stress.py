"""Many threads on one sparse table against a serial oracle: in the suite, or for a long time.

    python -m tests.support.table_stress [--seconds 600] [--threads 16] [--storage float32]
                                         [--helper-threads 0]

Each thread pushes whole numbers to rows that all share and to rows of its own, reads, exports, and
now and then drops rows of its own. By SGD at rate 1 all sums are exact, in any order, so the shared
rows must be minus the sum of what all threads pushed, and a thread's own rows what it pushed since
it dropped them.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from psrt.core import specs
from psrt.kernels.tables.row_layout import ID_WORD
from psrt.pserver.tables import sparse_table
from psrt.pserver.tables.helper_threads import NO_HELPERS, HelperThreads
from psrt.pserver.tables.sparse_table import SparseTable

WIDTH = 4
SHARED, OWN = 20_000, 3_000
OWN_SHIFT = 40  # ids of thread t begin at (t + 1) << 40
PAGE_ROWS = 700


@dataclass
class Part:
    """One thread: what it pushed to shared rows, and what its own rows should be."""

    number: int
    shared: np.ndarray = field(default_factory=lambda: np.zeros(SHARED, np.int64))
    own: Counter[int] = field(default_factory=Counter)
    differences: int = 0
    turns: int = 0

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.number)

    def turn(self, table: SparseTable) -> None:
        self.turns += 1
        self.push_shared(table)
        self.push_own(table)
        if self.turns % 7 == 0:
            self.export(table)
        if self.turns % 11 == 0:
            self.drop_own(table)
        self.differences += self.own_differences(table)

    def push_shared(self, table: SparseTable) -> None:
        big = self.turns % 10 == 0
        positions = self.rng.choice(SHARED, SHARED if big else 500, replace=False)
        amount = int(self.rng.integers(-3, 4))
        self.shared[positions] += amount
        push(table, positions.astype(np.int64), amount)

    def push_own(self, table: SparseTable) -> None:
        ids = (self.number + 1 << OWN_SHIFT) + self.rng.choice(OWN, 300, replace=False)
        amount = int(self.rng.integers(1, 4))
        self.own.update(dict.fromkeys(ids.tolist(), amount))
        push(table, ids, amount)

    def export(self, table: SparseTable) -> None:
        """Assert that rows of its own that no thread drops are all present and right."""
        seen: dict[int, float] = {}
        cursor = -1
        while cursor:
            ids, rows, cursor = table.export(max(cursor, 0), PAGE_ROWS)
            mine = ids >> OWN_SHIFT == self.number + 1
            seen.update(zip(ids[mine].tolist(), rows[mine, 0].tolist(), strict=True))
        self.differences += seen != {id_: -amount for id_, amount in self.own.items()}

    def drop_own(self, table: SparseTable) -> None:
        """Drop rows of its own with an even id."""
        cursor = -1
        while cursor:
            _, cursor = table.sweep(max(cursor, 0), PAGE_ROWS, self.decide)
        for id_ in [id_ for id_ in self.own if id_ % 2 == 0]:
            del self.own[id_]

    def decide(self, rows: np.ndarray) -> np.ndarray:
        ids = rows.view(np.int64)[:, ID_WORD // 2]
        return ((ids >> OWN_SHIFT == self.number + 1) & (ids % 2 == 0)).astype(np.uint8)

    def own_differences(self, table: SparseTable) -> int:
        ids = (self.number + 1 << OWN_SHIFT) + np.arange(OWN)
        expected = -np.array([self.own[id_] for id_ in ids.tolist()], np.float32)
        return int(np.count_nonzero(read(table, ids) != expected[:, None]))


def push(table: SparseTable, ids: np.ndarray, amount: int) -> None:
    gradients = np.full((len(ids), WIDTH), amount, np.float32)
    table.apply(table.route(ids), gradients, 1.0)


def read(table: SparseTable, ids: np.ndarray) -> np.ndarray:
    out = np.empty((len(ids), WIDTH), np.float32)
    table.read(table.route(ids), out)
    return out


def run(
    threads: int,
    go_on: Callable[[Part], bool],
    storage: str = "float32",
    helpers: HelperThreads = NO_HELPERS,
) -> dict[str, int]:
    """Turn after turn while `go_on`; `differences` from the oracle should be 0."""
    rule = (specs.Constant(0.0), specs.Sgd(), specs.ConstantRate(1.0))
    spec = specs.SparseTableSpec("t", WIDTH, *rule, 7, storage=storage)
    table = SparseTable(spec, stripes=3, helpers=helpers)
    parts, start = [Part(number) for number in range(threads)], threading.Barrier(threads)

    def live(part: Part) -> None:
        start.wait(30.0)
        while go_on(part):
            part.turn(table)

    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(live, part) for part in parts]:
            done.result()
    expected = -sum(part.shared for part in parts).astype(np.float32)
    shared = np.count_nonzero(read(table, np.arange(SHARED)) != expected[:, None])
    differences = sum(part.differences for part in parts) + int(shared)
    turns, kept = sum(part.turns for part in parts), sum(len(part.own) for part in parts)
    return {"differences": differences, "turns": turns, "rows": table.rows, "own_rows": kept}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--storage", choices=specs.STORAGES, default="float32")
    parser.add_argument("--helper-threads", type=int, default=0, help="for every batch, if any")
    args = parser.parse_args()
    ends = time.monotonic() + args.seconds
    sparse_table.LARGE_ROWS = 1 if args.helper_threads else sparse_table.LARGE_ROWS
    helpers = HelperThreads(args.helper_threads)
    figures = run(args.threads, lambda part: time.monotonic() < ends, args.storage, helpers)
    print(json.dumps(figures))
    sys.exit(1 if figures["differences"] else 0)
