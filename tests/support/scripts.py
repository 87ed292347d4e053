"""Python scripts as the processes of a cluster, told their role by environment variables alone.

Output goes to files. Every process has a deadline, and none is left behind.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.live_pservers import free_port
from tests.support.processes import ROOT

DEADLINE_S = 150.0
_ROLES = ("PSRT_", "PADDLE_", "POD_IP", "TRAINING_ROLE", "OMPI_", "PMI_", "SLURM_", "CPU_NUM")


@dataclass(frozen=True)
class Ended:
    """A process that ended, by itself or at its deadline (`code` is then None)."""

    name: str
    code: int | None
    output: str


def endpoints(count: int) -> list[str]:
    """Free ports of this host, no two alike."""
    ports: set[int] = set()
    while len(ports) < count:
        ports.add(free_port())
    return [f"127.0.0.1:{port}" for port in ports]


def cluster_variables(pservers: Sequence[str], trainers: int) -> dict[str, dict[str, str]]:
    """The variables that PaddlePaddle's launcher exports, by name of the process."""
    common = {
        "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(pservers),
        "PADDLE_TRAINERS_NUM": str(trainers),
    }
    made = {}
    for number, endpoint in enumerate(pservers):
        host, port = endpoint.split(":")
        own = {"TRAINING_ROLE": "PSERVER", "POD_IP": host, "PADDLE_PORT": port}
        made[f"pserver-{number}"] = common | own
    for number in range(trainers):
        own = {"TRAINING_ROLE": "TRAINER", "PADDLE_TRAINER_ID": str(number)}
        made[f"trainer-{number}"] = common | own
    return made


def run_all(
    logs: Path, command: Sequence[str], variables: Mapping[str, Mapping[str, str]]
) -> dict[str, Ended]:
    """`python COMMAND` once for each set of variables, all at the same time; how each ended."""
    running = {name: _start(logs / f"{name}.log", command, own) for name, own in variables.items()}
    until = time.monotonic() + DEADLINE_S
    try:
        codes = {name: _code(process, until) for name, process in running.items()}
    finally:
        for process in running.values():
            process.kill()  # does nothing to one that has ended
            process.wait()
    return {n: Ended(n, code, (logs / f"{n}.log").read_text()) for n, code in codes.items()}


def check_all_succeeded(ended: Mapping[str, Ended]) -> None:
    """Fail with the output of every process unless all ended by themselves, with success."""
    if any(process.code != 0 for process in ended.values()):
        stories = [f"--- {p.name}: exit {p.code}\n{p.output}" for p in ended.values()]
        raise AssertionError("\n".join(stories))


def _start(log: Path, command: Sequence[str], own: Mapping[str, str]) -> subprocess.Popen[bytes]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_ROLES)}
    with log.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, *command],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=kept | {"PYTHONPATH": str(ROOT), **own},
        )


def _code(process: subprocess.Popen[bytes], until: float) -> int | None:
    try:
        return process.wait(max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        return None
