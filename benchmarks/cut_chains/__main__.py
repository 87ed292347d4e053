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
                      again and again, which stays in the processor's cache; where the files are in
                      memory of a virtual machine's host, as on ours, that is faster than a program
                      can fill memory. Both shares are printed
    new_cpu_share     CPU seconds of `read_new` ÷ those of `load`, which also checks each byte and
                      enters each id in an index: steadier than shares of seconds on a busy host
    compact           seconds to merge the chain into one full cut, and MB

Acts take turns for `--rounds` rounds. Seconds are the best of these, shares the median, and
`…_shares` all of them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.cut_files import write_plain
from benchmarks.measuring import harness

os.environ.update(harness.ONE_THREAD)

import numpy as np

from benchmarks.cut_chains.loads import best_loads
from benchmarks.cut_chains.one_pserver import OnePserver
from psrt.core import specs
from psrt.core.allocator import keep_freed_memory
from psrt.kernels.jit import warm_up
from psrt.pserver.checkpoints import compact, find_cut
from psrt.pserver.tables import TableRegistry
from psrt.storage.local_directory import LocalDirectory

CHUNK = 100_000
"""Rows of one change."""


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
