"""Time of a pull of one row, alone and while other trainers load the pserver.

    python -m benchmarks.latency [--carrier stream|grpc] [--trainers 4] [--seconds 10] [--nice 0]

`alone` and `loaded` are percentiles in µs of consecutive calls by one trainer. Under load,
`--trainers` further processes pull and push 13,312 rows of 16 without a pause. On a host with fewer
cores than processes the calls also wait for a core; `--nice` lowers the priority of the load.
`curve` has the 1 %, 2 %, … 99 % percentiles, for pictures. `socket_round_trip_us` is the time of a
byte over a bare socket in the same run.
"""

from __future__ import annotations

import argparse
import os
import time

from benchmarks.measuring import harness

os.environ.update(harness.ONE_THREAD)

import numpy as np

from benchmarks import limits
from benchmarks.workloads import row_trainer
from benchmarks.workloads.row_trainer import TABLE, Load
from benchmarks.workloads.trainers import Who, connected, fill, start_line
from psrt.communicator.requests.pserver_group import PserverGroup

WARM_UP_CALLS = 200
PERCENTILES = {"p50_us": 50, "p90_us": 90, "p99_us": 99, "p99_9_us": 99.9, "max_us": 100}


def run(args: argparse.Namespace) -> harness.Figures:
    load = Load(rows=args.rows, seconds=args.seconds, nice=args.nice)
    me = Who(0, args.trainers + 1, args.carrier)
    socket_figures = limits.socket_figures(min(1.0, args.seconds))
    with harness.pservers(1) as endpoints, connected(endpoints[0], [load.table()], me) as pservers:
        fill(pservers, TABLE, 0, load.rows, load.width)
        alone = one_row_pulls_us(pservers, load.rows, args.seconds)
        others = [Who(number, me.trainers, args.carrier) for number in range(1, me.trainers)]
        children = [
            harness.start("workloads.row_trainer", row_trainer.flags_of(endpoints[0], who, load))
            for who in others
        ]
        start_line(pservers)
        loaded = one_row_pulls_us(pservers, load.rows, args.seconds)
        loads = [harness.figures_of(child, 60 + args.seconds) for child in children]
    return {
        "workload": "latency of a pull of 1 row",
        "carrier": args.carrier,
        "load_trainers": args.trainers,
        "load_nice": args.nice,
        "load_rows_per_s": round(sum(each["rows_per_s"] for each in loads)),
        "socket_round_trip_us": socket_figures["socket_round_trip_us"],
        "alone": summary(alone),
        "loaded": summary(loaded),
    }


def one_row_pulls_us(pservers: PserverGroup, rows: int, seconds: float) -> np.ndarray:
    """Microseconds of each call (calls,), for random existing rows."""
    ids = np.random.default_rng(3).integers(0, rows, (4096, 1))
    for number in range(WARM_UP_CALLS):
        pservers.pull_rows({TABLE: ids[number]})
    taken: list[int] = []
    ends = time.perf_counter_ns() + int(seconds * 1e9)
    while (started := time.perf_counter_ns()) < ends:
        pservers.pull_rows({TABLE: ids[len(taken) % len(ids)]})
        taken.append(time.perf_counter_ns() - started)
    return np.array(taken) / 1e3


def summary(taken_us: np.ndarray) -> harness.Figures:
    found = {name: round(float(np.percentile(taken_us, p)), 1) for name, p in PERCENTILES.items()}
    curve = np.percentile(taken_us, np.arange(1, 100)).round(1).tolist()
    return {"calls": len(taken_us), **found, "curve": curve}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--carrier", choices=("stream", "grpc"), default="stream")
    parser.add_argument("--trainers", type=int, default=4, help="under load")
    parser.add_argument("--nice", type=int, default=0, help="of their processes, 0 to 19")
    parser.add_argument("--seconds", type=float, default=10.0, help="alone, and under load")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the table")
    harness.main(parser, run)
