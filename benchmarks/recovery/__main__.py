"""Seconds that trainers lose when a pserver is killed and goes on from the newest cut.

    python -m benchmarks.recovery [--rows 1000000] [--kills 20] [--durability cut] [--mode async]
                                  [--optimizer adagrad] [--cut-every 3] [--pservers 2]
                                  [--trainers 2] [--no-standby] [--directory DIR]

Trains W1's network with a table of `--rows` rows, all of which exist before the first kill.
Pservers run as `psrt launch` runs them. Pserver 1 and pserver 0 are killed (SIGKILL) in turn, each
at another moment between two cuts, once a cut has been completed after the kill before and, unless
`--no-standby`, a process stands by. Cuts and
logs are deleted unless the benchmark fails.

    gap_median_s, gap_worst_s  longest time between the ends of two steps, of each trainer after
                               each kill; `gaps_s` are all of them, `wholes_s` whole recoveries
    gap_without_kill_s         the longest one before the first kill
    phases_median_s            noticed: until another process takes over; process: its start without
                               the next one; kernels: loaded; load: tables filled, at the same time
                               as the next ones; met: until the last trainer meets it; resend:
                               pushes sent again, and waits for tables; whole: all but load
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.measuring import harness
from benchmarks.recovery import trainer
from benchmarks.recovery.phases import TABLES, KilledPserver, TrainerTimes, figures
from psrt.core.clock import MonotonicClock
from psrt.launch.cluster import Cluster
from psrt.launch.engines import LocalEngine
from psrt.launch.plan import PSERVER, PSRT, TRAINER, ChildId, Command
from psrt.launch.supervise import Supervisor
from psrt.pserver.checkpoints import complete_cuts
from psrt.storage.local_directory import LocalDirectory

WAIT_S, POLL_S, GRACE_S = 300.0, 0.005, 30.0
GOLDEN = 0.618  # its multiples spread kills over the time between two cuts


def run(args: argparse.Namespace) -> harness.Figures:
    folder = Path(tempfile.mkdtemp(dir=args.directory, prefix="psrt-recovery-"))
    run = MeasuredRun(args, folder)
    run.train()
    trainers = [
        TrainerTimes(**json.loads((folder / f"trainer.{index}.json").read_text()))
        for index in range(args.trainers)
    ]
    shutil.rmtree(folder)
    names = (
        "mode",
        "optimizer",
        "durability",
        "rows",
        "pservers",
        "trainers",
        "cut_every",
        "standby",
    )
    settings = {name: getattr(args, name) for name in names}
    return {"workload": "recovery", **settings, "kills": args.kills} | figures(run.kills, trainers)


class MeasuredRun:
    """One cluster with its kills; the calling thread supervises, another one kills."""

    def __init__(self, args: argparse.Namespace, folder: Path) -> None:
        self._args, self._folder = args, folder
        self._cuts = LocalDirectory(folder / "cuts")
        self._starts: list[float] = []
        self._error: BaseException | None = None
        self.kills: list[KilledPserver] = []

    def train(self) -> None:
        kept = {"recoveries": self._args.kills, "stands_by": self._args.standby}
        engine, supervisor = LocalEngine(self._say), Supervisor(GRACE_S, **kept)
        with Cluster(engine, supervisor, MonotonicClock(), self._say) as cluster:
            cluster.start(self._pserver(index) for index in range(self._args.pservers))
            endpoints = cluster.wait_ready(WAIT_S)
            cluster.start(self._trainer(index, endpoints) for index in range(self._args.trainers))
            killing = threading.Thread(target=self._kill_in_turn, args=[cluster])
            killing.start()
            cluster.wait_ended()
            killing.join()
        cluster.check()
        if self._error is not None:
            raise self._error

    def _say(self, line: str) -> None:
        """Record the start of another process; the launcher reports it at that moment."""
        if "was killed and is started again" in line:
            self._starts.append(time.time())
        print(line, file=sys.stderr)

    # --- processes -------------------------------------------------------------------------------

    def _pserver(self, index: int) -> Command:
        ready = self._folder / f"pserver.{index}.ready.json"
        flags = {
            "host": "127.0.0.1",
            "port": "0",
            "num-gradient-servers": str(self._args.trainers),
            "checkpoint-dir": str(self._folder / "cuts"),
            "checkpoint-every-s": str(self._args.cut_every),
            "ready-file": str(ready),
        }
        words = [word for name, value in flags.items() for word in (f"--{name}", value)]
        return self._command(ChildId(PSERVER, index), (*PSRT, PSERVER, *words), ready)

    def _trainer(self, index: int, endpoints: list[str]) -> Command:
        names = ("mode", "optimizer", "rows", "trainers", "durability")
        flags = [f"--{name}={getattr(self._args, name)}" for name in names]
        flags += [f"--endpoints={','.join(endpoints)}", f"--folder={self._folder}"]
        words = (sys.executable, "-m", "benchmarks.recovery", *flags, f"--as-trainer={index}")
        result = self._folder / f"trainer.{index}.json"
        return self._command(ChildId(TRAINER, index), words, result)

    def _command(self, child: ChildId, words: tuple[str, ...], result: Path) -> Command:
        environ = os.environ | harness.ONE_THREAD
        return Command(child, words, environ, self._folder / f"{child}.log", result)

    # --- kills -----------------------------------------------------------------------------------

    def _kill_in_turn(self, cluster: Cluster) -> None:
        try:
            filled = [self._folder / f"filled.{index}" for index in range(self._args.trainers)]
            self._await(cluster, lambda: all(each.exists() for each in filled), "all rows")
            self._await_cut(cluster, max(complete_cuts(self._cuts), default=0) + 2)
            for number in range(self._args.kills):
                self._await(cluster, self._is_prepared, "a process that stands by")
                time.sleep(GOLDEN * number % 1 * self._args.cut_every)
                newest = max(complete_cuts(self._cuts))
                self.kills.append(self._kill((1 + number) % self._args.pservers))
                self._await_cut(cluster, newest + 2)
        except BaseException as error:
            self._error = error
        finally:
            (self._folder / "stop").touch()

    def _kill(self, index: int) -> KilledPserver:
        ready, log = (self._folder / f"pserver.{index}{end}" for end in (".ready.json", ".log"))
        pid, logged = json.loads(ready.read_text())["pid"], log.stat().st_size
        starts, killed = len(self._starts), time.time()
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: len(self._starts) > starts, "another process")
        eventually(lambda: ready.exists() and pid_of(ready) != pid, "a pserver that is ready")
        found = lambda: log.read_bytes()[logged:].decode(errors="replace")  # noqa: E731
        eventually(lambda: TABLES.search(found()) is not None, "tables")
        return KilledPserver(index, killed, self._starts[-1], ready.stat().st_mtime, found())

    def _is_prepared(self) -> bool:
        """True if a process stands by, or none is wanted."""
        log = self._folder / "standby.log"
        if not self._args.standby:
            return True
        text = log.read_text() if log.exists() else ""
        return "stands by" in text and "takes the place" not in text

    def _await_cut(self, cluster: Cluster, number: int) -> None:
        newest = lambda: max(complete_cuts(self._cuts), default=0)  # noqa: E731
        self._await(cluster, lambda: newest() >= number, f"cut {number}")

    def _await(self, cluster: Cluster, is_true: Callable[[], bool], what: str) -> None:
        def is_so() -> bool:
            if any(each.code is not None for each in cluster.processes):
                raise SystemExit(f"a process ended; see {self._folder}")
            return is_true()

        eventually(is_so, what)


def pid_of(ready: Path) -> int:
    return int(json.loads(ready.read_text())["pid"])


def eventually(is_true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not is_true():
        if time.monotonic() > deadline:
            raise SystemExit(f"the benchmark waited {WAIT_S:.0f} s for {what}")
        time.sleep(POLL_S)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--mode", choices=("sync", "async", "ssp", "half_async"), default="async")
    parser.add_argument("--optimizer", choices=("sgd", "adagrad", "adam"), default="adagrad")
    parser.add_argument("--durability", choices=("cut",), default="cut")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--cut-every", type=float, default=3.0, metavar="SECONDS")
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
