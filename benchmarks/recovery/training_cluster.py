"""A cluster that trains W1's network, its processes run as `psrt launch` runs them.

`TrainingCluster` supervises on the calling thread, while `act` works on another one. Each trainer
is `benchmarks.recovery.trainer`: it touches `filled.N` when all rows exist, ends when there is a
file `stop`, and leaves the times of its steps in `trainer.N.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from benchmarks.measuring import harness
from benchmarks.measuring.processes import cpu_s
from benchmarks.recovery.phases import TrainerTimes
from psrt.core.clock import MonotonicClock
from psrt.core.errors import PsrtError
from psrt.launch.cluster import Cluster
from psrt.launch.engines import LocalEngine
from psrt.launch.plan import PSERVER, PSRT, TRAINER, ChildId, Command
from psrt.launch.replacements import RECOVER
from psrt.launch.supervise import Supervisor
from psrt.pserver.checkpoints import complete_cuts
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from psrt.rpc.retry import RetryPolicy
from psrt.storage.local_directory import LocalDirectory

WAIT_S, POLL_S, GRACE_S = 300.0, 0.005, 30.0
STATUS_S = 5.0
_ONCE = RetryPolicy(budget_s=0.0)


class TrainingCluster:
    """One cluster in a folder.

    `args` has mode, optimizer, rows, trainers, pservers and durability. `flags` are further ones of
    each pserver by name. Killed pservers are started again `recoveries` times.
    """

    def __init__(
        self,
        args: argparse.Namespace,
        folder: Path,
        flags: dict[str, str],
        recoveries: int = 0,
        stands_by: bool = False,
    ) -> None:
        self._args, self._flags = args, flags
        self._kept = {"recoveries": recoveries, "stands_by": stands_by}
        self._error: BaseException | None = None
        self._cluster: Cluster | None = None
        self.folder = folder
        self.cuts = LocalDirectory(folder / "cuts")
        self.starts: list[float] = []

    def train(self, act: Callable[[], None]) -> list[TrainerTimes]:
        """Train until `act`, which begins once all rows exist, has ended; returns all times."""
        again = () if self._args.durability == "replica" else (RECOVER,)
        supervisor = Supervisor(GRACE_S, **self._kept)
        with Cluster(
            LocalEngine(self._say), supervisor, MonotonicClock(), self._say, again
        ) as cluster:
            self._cluster = cluster
            cluster.start(self._pserver(index) for index in range(self._args.pservers))
            endpoints = cluster.wait_ready(WAIT_S)
            cluster.start(self._trainer(index, endpoints) for index in range(self._args.trainers))
            acting = threading.Thread(target=self._acts, args=[act])
            acting.start()
            cluster.wait_ended()
            acting.join()
        cluster.check()
        if self._error is not None:
            raise self._error
        found = [self.folder / f"trainer.{index}.json" for index in range(self._args.trainers)]
        return [TrainerTimes(**json.loads(path.read_text())) for path in found]

    @property
    def newest(self) -> int:
        """The number of the newest complete cut, 0 = none."""
        return max(complete_cuts(self.cuts), default=0)

    def cpu_s(self) -> float:
        """CPU seconds of all processes since their start."""
        found = self._cluster.processes if self._cluster is not None else []
        return sum(cpu_s(each.pid) for each in found)

    def await_cut(self, number: int) -> None:
        self.wait_for(lambda: self.newest >= number, f"cut {number}")

    def await_another(self, pserver: int, pid: int) -> None:
        """Wait until a process has taken the place of a killed one, and is ready."""

        def is_ready() -> bool:
            with suppress(FileNotFoundError):  # a process deletes it at its start
                return self.pid(pserver) != pid
            return False

        eventually(is_ready, "another process")

    def wait_for(self, is_true: Callable[[], bool], what: str) -> None:
        """Wait until it is so; ends the benchmark if a process has ended."""

        def is_so() -> bool:
            processes = self._cluster.processes if self._cluster is not None else []
            if any(each.code is not None for each in processes):
                raise SystemExit(f"a process ended; see {self.folder}")
            return is_true()

        eventually(is_so, what)

    def ready_file(self, pserver: int) -> Path:
        return self.folder / f"pserver.{pserver}.ready.json"

    def pid(self, pserver: int) -> int:
        return int(json.loads(self.ready_file(pserver).read_text())["pid"])

    def parts_held_by(self, pserver: int) -> list[dict[str, Any]]:
        """The parts that a pserver backs up or serves for another; none if it does not answer."""
        try:
            endpoint = json.loads(self.ready_file(pserver).read_text())["endpoint"]
            with closing(Client(endpoint, 0, 1, "stream", pb.Hello(), retry=_ONCE)) as client:
                reply = client.call(Method.STATUS, timeout_s=STATUS_S)
        except (PsrtError, FileNotFoundError, json.JSONDecodeError):
            return []
        return list(json.loads(reply.header.status_json).get("parts", []))

    def log(self, process: str) -> Path:
        return self.folder / f"{process}.log"

    # --- inside ----------------------------------------------------------------------------------

    def _acts(self, act: Callable[[], None]) -> None:
        try:
            filled = [self.folder / f"filled.{index}" for index in range(self._args.trainers)]
            self.wait_for(lambda: all(each.exists() for each in filled), "all rows")
            act()
        except BaseException as error:
            self._error = error
        finally:
            (self.folder / "stop").touch()

    def _say(self, line: str) -> None:
        """Record the start of another process; the launcher reports it at that moment."""
        if "was killed and is started again" in line:
            self.starts.append(time.time())
        print(line, file=sys.stderr)

    def _pserver(self, index: int) -> Command:
        ready = self.ready_file(index)
        flags = {
            "host": "127.0.0.1",
            "port": "0",
            "num-gradient-servers": str(self._args.trainers),
            "ready-file": str(ready),
            **self._flags,
        }
        words = [word for name, value in flags.items() for word in (f"--{name}", value)]
        return self._command(ChildId(PSERVER, index), (*PSRT, PSERVER, *words), ready)

    def _trainer(self, index: int, endpoints: list[str]) -> Command:
        names = ("mode", "optimizer", "rows", "trainers", "durability")
        flags = [f"--{name}={getattr(self._args, name)}" for name in names]
        flags += [f"--endpoints={','.join(endpoints)}", f"--folder={self.folder}"]
        words = (sys.executable, "-m", "benchmarks.recovery", *flags, f"--as-trainer={index}")
        result = self.folder / f"trainer.{index}.json"
        return self._command(ChildId(TRAINER, index), words, result)

    def _command(self, child: ChildId, words: tuple[str, ...], result: Path) -> Command:
        environ = os.environ | harness.ONE_THREAD
        return Command(child, words, environ, self.log(str(child)), result)


def eventually(is_true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not is_true():
        if time.monotonic() > deadline:
            raise SystemExit(f"the benchmark waited {WAIT_S:.0f} s for {what}")
        time.sleep(POLL_S)
