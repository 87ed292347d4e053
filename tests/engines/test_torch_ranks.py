"""A PyTorch script finds its rank and the pservers under every launcher that is installed here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="psrt.torch needs torch")

from tests.engines.conftest import Flags
from tests.support.mpi_flags import mpi_flags
from tests.support.processes import DEADLINE_S, ROOT, clean_environment
from tests.support.pserver import daemon

SCRIPT = ROOT / "tests" / "support" / "torch_rank.py"
PYTHON = [sys.executable, str(SCRIPT)]


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[str]:
    """A pserver that was started apart."""
    with daemon(tmp_path, "--num-gradient-servers", "2") as pserver:
        yield pserver.endpoint


def run(command: Sequence[str], endpoint: str = "", **variables: str) -> str:
    """Run a launcher of two ranks to its end; returns all that it has printed."""
    environ = clean_environment() | {"PYTHONPATH": str(ROOT), **variables}
    if endpoint:
        environ["PSRT_TRAINER_ENDPOINTS"] = endpoint
    done = subprocess.run(
        command,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def check_ranks(directory: Path, met: int) -> None:
    """Both ranks were in each other's rounds: they see one table."""
    found: list[dict[str, Any]] = [
        json.loads((directory / f"rank-{rank}.json").read_text()) for rank in (0, 1)
    ]
    assert [(each["rank"], each["trainers"], each["met"]) for each in found] == [
        (0, 2, met),
        (1, 2, met),
    ]
    assert found[0]["rows"] == found[1]["rows"]


def test_torchrun(endpoint: str, tmp_path: Path) -> None:
    flags = ["--standalone", "--nproc-per-node=2"]
    run(
        [sys.executable, "-m", "torch.distributed.run", *flags, str(SCRIPT), str(tmp_path)],
        endpoint,
    )

    check_ranks(tmp_path, met=2)


@pytest.mark.parametrize("command", ["mpirun.openmpi", "mpirun.mpich"])
def test_mpirun(command: str, endpoint: str, tmp_path: Path) -> None:
    mpirun = mpi_flags(command)["mpirun"].split()
    passed = ["-x", "PSRT_TRAINER_ENDPOINTS", "-x", "PYTHONPATH"] if "openmpi" in command else []
    run([*mpirun, "-n", "2", *passed, *PYTHON, str(tmp_path)], endpoint)

    check_ranks(tmp_path, met=0)


def test_srun(endpoint: str, tmp_path: Path, allocation: Flags) -> None:
    slurm = {name: value for name, value in os.environ.items() if name.startswith("SLURM_")}
    run(["srun", "--ntasks=2", "--overlap", *PYTHON, str(tmp_path)], endpoint, **slurm)

    check_ranks(tmp_path, met=0)


@pytest.mark.parametrize("engine", ["local", "mpi", "ssh", "slurm"])
def test_psrt_launch_starts_pservers_and_ranks(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    flags: Flags = {"on": engine}
    if engine == "mpi":
        flags = mpi_flags()
    elif engine != "local":
        fixture = "ssh_flags" if engine == "ssh" else "allocation"
        flags = {name: str(value) for name, value in request.getfixturevalue(fixture).items()}
    given = [f"--{name.replace('_', '-')}={value}" for name, value in flags.items()]
    launch = [sys.executable, "-m", "psrt", "launch", "--pservers=1", f"--log-dir={tmp_path}/logs"]
    slurm = {name: value for name, value in os.environ.items() if name.startswith("SLURM_")}
    printed = run([*launch, *given, str(SCRIPT), "--", str(tmp_path)], **slurm)

    check_ranks(tmp_path, met=2)
    assert "started 1 pserver;" in printed
