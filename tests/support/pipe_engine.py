"""An engine with runners of this host behind pipes: it has all parts but the way to hosts."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from psrt.launch.engines import EngineKind
from psrt.launch.plan import LOOPBACK, PSERVER, ChildId, Plan
from psrt.launch.runners import PipeLink, RunnerConnection, RunnerEngine, runner_command


class PipeReach:
    """Two runners, one for pservers and one for trainers."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.open: list[RunnerConnection] = []

    def connections(self) -> list[RunnerConnection]:
        for number, name in enumerate(("host-a", "host-b")):
            log = self._directory / f"runner.{number}.log"
            link = PipeLink(runner_command(sys.executable), os.environ, log)
            self.open.append(RunnerConnection(name, link, LOOPBACK))
        return self.open

    def place(self, child: ChildId) -> int:
        return 0 if child.role == PSERVER else 1

    def close(self) -> None:
        """Runners end with their pipes."""


def pipe_engine(plan: Plan, say: Callable[[str], None]) -> RunnerEngine:
    return RunnerEngine("pipe", PipeReach(Path(plan.config.log_dir)), plan, say)


PIPES = EngineKind(pipe_engine, lambda plan: "")
