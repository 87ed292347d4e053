"""`psrt` as real processes: output in a file, waits with a deadline, never left behind."""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from tests.support.carriers import eventually
from tests.support.forked import ForkedPsrt
from tests.support.logs import tails

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 180.0
"""Generous: a host may be busy, and its first start compiles kernels. No test fails by slowness
alone, so the time limit of a whole test in pyproject.toml is above some of these."""

Process: TypeAlias = "subprocess.Popen[str] | ForkedPsrt"


@dataclass
class Running:
    """A process of psrt, the file of its output, and the logs of its children if it has some."""

    process: Process
    log: Path
    logs: Path | None = None

    @property
    def output(self) -> str:
        return self.log.read_text()

    def wait_for(self, text: str) -> None:
        """Until the output has `text`; fails if the process ends without having said it."""

        def said() -> bool:
            ended = self.process.poll() is not None
            found = text in self.output
            assert found or not ended, f"it ended without saying {text!r}:{tails(*self._places)}"
            return found

        eventually(said, f"{text!r} in the output of psrt", DEADLINE_S, logs=self._places)

    def exit_code(self, deadline_s: float = DEADLINE_S) -> int:
        """Wait for the end; a failure has the last lines of all logs."""
        return exit_code(self.process, *self._places, deadline_s=deadline_s)

    @property
    def _places(self) -> list[Path]:
        return [place for place in (self.log, self.logs) if place is not None]


def exit_code(process: Process, *logs: Path, deadline_s: float = DEADLINE_S) -> int:
    """The exit code of a process that ends; a failure has the last lines of `logs`."""
    try:
        return process.wait(deadline_s)
    except subprocess.TimeoutExpired as late:
        raise AssertionError(f"it did not end in {deadline_s} s:{tails(*logs)}") from late


@contextlib.contextmanager
def psrt(log: Path, *arguments: str, is_forked: bool = True, **variables: str) -> Iterator[Running]:
    """`psrt ARGUMENTS` with environment `variables`; killed in the end if it still runs."""
    process = start(log, *arguments, variables=variables, is_forked=is_forked)
    given = dict(itertools.pairwise(arguments))
    logs = Path(given["--log-dir"]) if "--log-dir" in given else None
    try:
        yield Running(process, log, logs)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def start(
    log: Path, *arguments: str, variables: Mapping[str, str] | None = None, is_forked: bool = True
) -> Process:
    """Start `psrt ARGUMENTS`: forked from a process that has loaded it, or in a new Python."""
    environment = clean_environment() | dict(variables or {})
    log.write_text("")
    if is_forked:
        return ForkedPsrt(arguments, environment, log, ROOT)
    with log.open("w") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "psrt", *arguments],
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
            env=environment,
        )


def child_of(launch: int, name: str) -> int:
    """The pid of the process `name`, such as trainer.1, of a forked launch."""
    children = Path(f"/proc/{launch}/task/{launch}/children").read_text().split()
    found = [pid for pid in children if Path(f"/proc/{pid}/comm").read_text().strip() == name]
    assert len(found) == 1, f"{len(found)} children of {launch} are {name}"
    return int(found[0])


def clean_environment() -> dict[str, str]:
    """Without the variables that set up a process of psrt, so that a test's own decide."""
    roles = ("PSRT_", "PADDLE_", "POD_IP", "TRAINING_ROLE", "OMPI_", "SLURM_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(roles)}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
