"""Seconds that trainers lose when a pserver is killed and goes on from the newest cut.

    python -m benchmarks.recovery [--rows 1000000] [--kills 20] [--mode async]
                                  [--durability cut|delta|replica] [--optimizer adagrad]
                                  [--cut-every 3] [--pservers 2] [--trainers 2]
                                  [--no-standby] [--directory DIR]

Trains W1's network with a table of `--rows` rows, all of which exist before the first kill.
Pservers run as `psrt launch` runs them. Pserver 1 and pserver 0 are killed (SIGKILL) in turn, each
at another moment between two cuts, once a cut has been completed after the kill before and, unless
`--no-standby`, a process stands by. With `--durability replica` the backup of the killed one takes
over; the next one is killed once both parts have copies again. Cuts and logs are deleted unless the
benchmark fails.

    gap_median_s, gap_worst_s  longest time between the ends of two steps, of each trainer after
                               each kill; `gaps_s` are all of them, `wholes_s` whole recoveries
    gap_without_kill_s         the longest one before the first kill
    phases_median_s            noticed: until another process takes over; process: its start without
                               the next one; kernels: loaded; load: tables filled, at the same time
                               as the next ones; met: until the last trainer meets it; resend:
                               pushes sent again, and waits for tables; whole: all but load
                               (replica: noticed: until a trainer deposes the pserver; served: until
                               the last trainer goes on with the backup)
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import harness
from benchmarks.recovery import trainer
from benchmarks.recovery.phases import TABLES, Failover, KilledPserver, Recovery, figures
from benchmarks.recovery.training_cluster import TrainingCluster, eventually

GOLDEN = 0.618  # its multiples spread kills over the time between two cuts


def run(args: argparse.Namespace) -> harness.Figures:
    if args.durability == "none":
        raise SystemExit("a job that is not durable ends with a pserver that is killed")
    folder = Path(tempfile.mkdtemp(dir=args.directory, prefix="psrt-recovery-"))
    flags = (
        {}
        if args.durability == "replica"
        else {
            "checkpoint-dir": str(folder / "cuts"),
            "checkpoint-every-s": str(args.cut_every),
            "delta-every-s": str(args.delta_every),
        }
    )
    cluster = TrainingCluster(args, folder, flags, args.kills, args.standby)
    killer = (Failovers if args.durability == "replica" else Recoveries)(cluster, args)
    trainers = cluster.train(killer.kill_in_turn)
    shutil.rmtree(folder)
    names = ("mode", "optimizer", "durability", "rows", "pservers", "trainers")
    names += ("cut_every", "delta_every", "standby")
    settings = {name: getattr(args, name) for name in names}
    return {"workload": "recovery", **settings, "kills": args.kills} | figures(
        killer.kills, trainers
    )


class Recoveries:
    """Kills of pservers that are started again."""

    def __init__(self, cluster: TrainingCluster, args: argparse.Namespace) -> None:
        self._cluster, self._args = cluster, args
        self.kills: list[Recovery] = []

    def kill_in_turn(self) -> None:
        self._cluster.await_cut(self._cluster.newest + 2)
        for number in range(self._args.kills):
            self._cluster.wait_for(self._is_prepared, "a process that stands by")
            time.sleep(GOLDEN * number % 1 * self._args.cut_every)
            newest = self._cluster.newest
            self.kills.append(self._kill((1 + number) % self._args.pservers))
            self._cluster.await_cut(newest + 2)

    def _kill(self, index: int) -> KilledPserver:
        cluster = self._cluster
        ready, log = cluster.ready_file(index), cluster.log(f"pserver.{index}")
        pid, logged = cluster.pid(index), log.stat().st_size
        killed = time.time()
        os.kill(pid, signal.SIGKILL)
        cluster.await_another(index, pid)
        found = lambda: log.read_bytes()[logged:].decode(errors="replace")  # noqa: E731
        eventually(lambda: TABLES.search(found()) is not None, "tables")
        return KilledPserver(index, killed, cluster.starts[-1], ready.stat().st_mtime, found())

    def _is_prepared(self) -> bool:
        """True if a process stands by, or none is wanted."""
        log = self._cluster.log("standby")
        if not self._args.standby:
            return True
        text = log.read_text() if log.exists() else ""
        return "stands by" in text and "takes the place" not in text


class Failovers:
    """Kills of pservers whose backups take over."""

    def __init__(self, cluster: TrainingCluster, args: argparse.Namespace) -> None:
        self._cluster, self._args = cluster, args
        self.kills: list[Recovery] = []

    def kill_in_turn(self) -> None:
        for number in range(self._args.kills):
            self._cluster.wait_for(self._has_copies, "copies of all parts")
            time.sleep(1 + GOLDEN * number % 1)
            index = (1 + number) % self._args.pservers
            pid = self._cluster.pid(index)
            self.kills.append(Failover(index, time.time()))
            os.kill(pid, signal.SIGKILL)
            self._cluster.await_another(index, pid)
        self._cluster.wait_for(self._has_copies, "copies of all parts")

    def _has_copies(self) -> bool:
        """True if a pserver has a copy of each part, as it is now."""
        time.sleep(0.1)  # between two questions
        count = self._args.pservers
        held = [part for index in range(count) for part in self._cluster.parts_held_by(index)]
        return len({each["part"] for each in held if each["role"] == "copy"}) == count


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--mode", choices=("sync", "async", "ssp", "half_async"), default="async")
    parser.add_argument("--optimizer", choices=("sgd", "adagrad", "adam"), default="adagrad")
    parser.add_argument("--durability", choices=("none", "cut", "delta", "replica"), default="cut")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--cut-every", type=float, default=3.0, metavar="SECONDS")
    parser.add_argument("--delta-every", type=float, default=5.0, metavar="SECONDS")
    parser.add_argument("--standby", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--pservers", type=int, default=2)
    parser.add_argument("--trainers", type=int, default=2)
    parser.add_argument("--directory", default=None, help="place of cuts and logs")
    parser.add_argument("--endpoints", default="", help=argparse.SUPPRESS)
    parser.add_argument("--folder", default="", help=argparse.SUPPRESS)
    parser.add_argument("--as-trainer", type=int, default=None, help=argparse.SUPPRESS)
    known, _ = parser.parse_known_args()
    if known.as_trainer is not None:
        trainer.train(known)
    else:
        harness.main(parser, run)
