"""Cuts as trainers notice them: steps of W1 while one is written, and before it.

    python -m benchmarks.cuts_while_training [--rows 5000000] [--cuts 10] [--mode async]
                                             [--optimizer adagrad] [--full-every 1]
                                             [--pservers 2] [--trainers 2] [--directory DIR]
                                             [--mib-per-s 10]

Trains W1's network with a table of `--rows` rows, all of which exist before the first cut. Pserver
0 is asked for cuts by SIGUSR1, one after the other, with at least as long a time in between. With
`--full-every 8` seven of eight cuts are incremental. Files are synced, and deleted at the end.

    cut_median_s      seconds from the signal until the manifest is durable
    step_ms           steps of all trainers while cuts are written, and in as long a time before
                      each: median, 99 of 100, the longest, and their number
    extra_p99_ms      difference of the two at 99 of 100
    longest_extra_ms  the longest step of a cut − the longest of the time before it: median and
                      worst of all cuts
    throughput_share  steps a second during a cut ÷ before it, median of all cuts
    cpu_ms_per_step   CPU time of all processes for a step of one trainer, median of all cuts; and
                      cpu_share, that before a cut ÷ during it: where all cores are busy this is the
                      part of the throughput that a cut leaves, whatever else the host computes
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path

from benchmarks.cuts_while_training.spans import SETTLED_S, Cut, figures
from benchmarks.measuring import harness
from benchmarks.recovery.training_cluster import TrainingCluster

LEAST_QUIET_S = 1.0


def run(args: argparse.Namespace) -> harness.Figures:
    folder = Path(tempfile.mkdtemp(dir=args.directory, prefix="psrt-cuts-"))
    flags = {
        "checkpoint-dir": str(folder / "cuts"),
        "checkpoint-full-every": str(args.full_every),
        "checkpoint-keep": "2",
        "checkpoint-mib-per-s": str(args.mib_per_s),
    }
    cluster = TrainingCluster(args, folder, flags)
    cuts = list[Cut]()
    trainers = cluster.train(lambda: cuts.extend(made(cluster, args.cuts)))
    shutil.rmtree(folder)
    names = ("mode", "optimizer", "rows", "pservers", "trainers", "full_every", "cuts", "mib_per_s")
    settings = {name: getattr(args, name) for name in names}
    found = figures(cuts, [each.ends for each in trainers])
    return {"workload": "cuts while training", **settings} | found


def made(cluster: TrainingCluster, count: int) -> list[Cut]:
    """Make cuts; the first one counts for nothing: it makes memory that later ones have."""
    quiet_from = one(cluster, time.time()).ended
    cuts = list[Cut]()
    for _ in range(count):
        before_s = cuts[-1].ended - cuts[-1].begun if cuts else 2 * LEAST_QUIET_S
        time.sleep(SETTLED_S)
        settled = time.time(), cluster.cpu_s()
        time.sleep(max(LEAST_QUIET_S, 1.2 * before_s))
        cuts.append(one(cluster, quiet_from, settled))
        quiet_from = cuts[-1].ended
    return cuts


def one(
    cluster: TrainingCluster, quiet_from: float, settled: tuple[float, float] = (0.0, 0.0)
) -> Cut:
    """Make a cut; `settled` are a time before it and CPU seconds until then."""
    number, before_s, begun = cluster.newest + 1, cluster.cpu_s(), time.time()
    os.kill(cluster.pid(0), signal.SIGUSR1)
    cluster.await_cut(number)
    ended = time.time()
    return Cut(quiet_from, begun, ended, settled[0], (settled[1], before_s, cluster.cpu_s()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--mode", choices=("sync", "async", "ssp", "half_async"), default="async")
    parser.add_argument("--optimizer", choices=("sgd", "adagrad", "adam"), default="adagrad")
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--cuts", type=int, default=10)
    parser.add_argument("--full-every", type=int, default=1, metavar="CUTS")
    parser.add_argument("--pservers", type=int, default=2)
    parser.add_argument("--trainers", type=int, default=2)
    parser.add_argument(
        "--mib-per-s", type=float, default=10.0, help="of each pserver; 0 = no limit"
    )
    parser.add_argument("--directory", default=None, help="place of cuts and logs")
    parser.set_defaults(durability="none")
    harness.main(parser, run)
