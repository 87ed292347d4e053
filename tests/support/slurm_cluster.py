"""A cluster of Slurm for tests: its daemons on this host, as four nodes of loopback."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.live_pservers import free_port

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "salloc", "scontrol")
NODES = 4
_READY_S = 60.0
_CONF = """\
ClusterName=psrt
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={directory}/munge.sock
CredType=cred/munge
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool.%n
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd.%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobRequeue=1
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SchedulerParameters=sched_interval=2,bf_interval=2
InactiveLimit=0
KillWait=5
SlurmctldTimeout=10
SlurmdTimeout=60
{nodes}
PartitionName=debug Nodes=n[1-4] Default=YES MaxTime=INFINITE State=UP
"""


@contextmanager
def slurm_cluster(directory: Path) -> Iterator[Path]:
    """Run the daemons; yields the configuration, for the variable SLURM_CONF."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing or os.getuid() != 0:
        pytest.skip(f"needs root and {', '.join(missing) or 'nothing else'} of Slurm and MUNGE")
    conf = _written(directory)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_daemon("munged", *_munged(directory)))
        _until(lambda: (directory / "munge.sock").exists())
        stack.enter_context(_daemon("slurmctld", "-D", "-f", str(conf), log=directory))
        for node in range(1, NODES + 1):
            flags = ("-D", "-N", f"n{node}", "-f", str(conf))
            stack.enter_context(_daemon("slurmd", *flags, log=directory))
        _until(lambda: _idle_nodes(conf) == NODES)
        yield conf


@contextmanager
def allocated(*flags: str) -> Iterator[dict[str, str]]:
    """Allocate nodes; yields the variables that a process in the allocation has."""
    done = _ran("salloc", "--no-shell", *flags)
    job = re.search(r"Granted job allocation (\d+)", done.stderr)
    assert job is not None, done.stderr
    try:
        [nodes] = _ran("squeue", "--noheader", "--format=%N", f"--jobs={job[1]}").stdout.split()
        yield {"SLURM_JOB_ID": job[1], "SLURM_JOB_NODELIST": nodes, "SLURM_TASKS_PER_NODE": "2(x2)"}
    finally:
        _ran("scancel", job[1])


def _ran(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=_READY_S, check=True)


def _written(directory: Path) -> Path:
    for name in ("state", *(f"spool.n{node}" for node in range(1, NODES + 1))):
        (directory / name).mkdir()
    key = directory / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o600)
    host = socket.gethostname().partition(".")[0]
    nodes = "\n".join(
        f"NodeName=n{node} NodeHostname={host} NodeAddr=127.0.0.{10 + node} Port={free_port()} "
        "CPUs=4 RealMemory=2000 State=UNKNOWN"
        for node in range(1, NODES + 1)
    )
    conf = directory / "slurm.conf"
    conf.write_text(_CONF.format(host=host, port=free_port(), directory=directory, nodes=nodes))
    return conf


def _munged(directory: Path) -> list[str]:
    names = {"key-file": "munge.key", "socket": "munge.sock", "pid-file": "munged.pid"}
    names |= {"log-file": "munged.log", "seed-file": "munge.seed"}
    files = [f"--{flag}={directory / name}" for flag, name in names.items()]
    return ["--foreground", "--force", "--num-threads=2", *files]


@contextmanager
def _daemon(*command: str, log: Path | None = None) -> Iterator[None]:
    output = open(log / f"{command[0]}.out", "ab") if log else subprocess.DEVNULL  # noqa: SIM115
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    finally:
        if log:
            output.close()
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(10.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _idle_nodes(conf: Path) -> int:
    done = subprocess.run(
        ["sinfo", "--noheader", "--Node", "--format=%T"],
        env={**os.environ, "SLURM_CONF": str(conf)},
        capture_output=True,
        text=True,
        timeout=_READY_S,
        check=False,
    )
    return done.stdout.split().count("idle")


def _until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _READY_S
    while not is_true():
        if time.monotonic() > deadline:
            pytest.fail(f"Slurm is not ready after {_READY_S:g} s")
        time.sleep(0.1)
