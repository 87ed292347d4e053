"""The engine `mpi`: one `mpirun` with two programs, pservers and trainers, whose ranks are runners.

Each rank dials the launcher, which gives it the process of that rank. Open MPI and the Hydra of
MPICH and Intel MPI are known.
"""

from __future__ import annotations

import contextlib
import enum
import secrets
import shlex
import socket
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from psrt.config.load import environment
from psrt.core.clock import MonotonicClock
from psrt.core.errors import ConfigError, JobError
from psrt.launch.hosts import Host, hosts_in
from psrt.launch.outputs import last_lines
from psrt.launch.plan import LOOPBACK, PSERVER, ChildId, Plan
from psrt.launch.plan_text import commands_text
from psrt.launch.processes import die_with_parent
from psrt.launch.runners import (
    KEY_VARIABLE,
    RunnerConnection,
    RunnerEngine,
    RunnerPort,
    SocketLink,
    runner_command,
)

_VERSION_S = 30.0
_END_S = 10.0
_ANY_PORT = 9  # discard; nothing is sent


class Flavour(enum.Enum):
    OPEN_MPI = "Open MPI"
    HYDRA = "Hydra"


def mpi_engine(plan: Plan, say: Callable[[str], None]) -> RunnerEngine:
    """Return the engine; raises `ConfigError` if there is no `mpirun`."""
    return RunnerEngine("mpi", MpiReach(plan, _flavour(plan)), plan, say)


def described(plan: Plan) -> str:
    """The line of `mpirun`, and what each rank runs."""
    line = shlex.join(mpirun_line(plan, _flavour(plan), f"{_address(plan)}:PORT_OF_LAUNCHER"))
    commands = commands_text(plan, lambda child: f"HOST_OF_RANK_{_rank(plan, child)}")
    return f"# with the key of the launch in {KEY_VARIABLE}\n{line}\n\n{commands}"


def mpirun_line(plan: Plan, flavour: Flavour, endpoint: str) -> list[str]:
    """Return the words that start a runner as each rank: pservers first, then trainers."""
    config = plan.config
    runner = runner_command(config.python, endpoint)
    hosts = _hosts_flag(hosts_in(config.hosts), flavour) if config.hosts else []
    if flavour is Flavour.OPEN_MPI:
        # Flags of hosts and variables are those of one program. Ranks take the hosts in turn.
        own = ["--map-by", "node"] if hosts else []
        each = [*hosts, "-x", KEY_VARIABLE]
    else:
        own, each = [*hosts, "-genvlist", KEY_VARIABLE], []
    start = [*shlex.split(config.mpirun), *own]
    pservers = [*each, "-n", str(config.pservers), *runner]
    return [*start, *pservers, ":", *each, "-n", str(config.trainers), *runner]


class MpiReach:
    """A running `mpirun`; its own messages go to `mpirun.log` in the directory of logs."""

    def __init__(self, plan: Plan, flavour: Flavour) -> None:
        self._plan = plan
        self._runners: dict[int, RunnerConnection] = {}
        self._log = Path(plan.config.log_dir) / "mpirun.log"
        key = secrets.token_bytes(32)
        self._port = RunnerPort(_address(plan), key, MonotonicClock())
        line = mpirun_line(plan, flavour, self._port.endpoint)
        self._mpirun = _started(line, {**environment(), KEY_VARIABLE: key.hex()}, self._log)

    def connections(self) -> list[RunnerConnection] | None:
        for caller in self._port.accept():
            link = SocketLink(caller.connection)
            self._runners[caller.rank] = RunnerConnection(caller.host, link)
        if self._mpirun.poll() is not None:
            raise JobError(
                f"mpirun ended with code {self._mpirun.returncode} before its ranks had reached "
                f"the launcher; psrt started nothing.\n{last_lines(self._log)}",
                hint=f"See {self._log}. Further flags of mpirun go into --mpirun; on other hosts "
                "--address must be one of this host that they reach.",
            )
        ranks = range(self._plan.config.pservers + self._plan.config.trainers)
        has_all = all(rank in self._runners for rank in ranks)
        return [self._runners[rank] for rank in ranks] if has_all else None

    def place(self, child: ChildId) -> int:
        return _rank(self._plan, child)

    def close(self) -> None:
        """Wait until `mpirun` has seen the end of its ranks; then end it."""
        self._port.close()
        for each in self._runners.values():
            each.link.close()
        for end in (self._mpirun.terminate, self._mpirun.kill):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._mpirun.wait(_END_S)
                return
            end()
        self._mpirun.wait()


def _rank(plan: Plan, child: ChildId) -> int:
    """The rank of a process; a trainer beyond the first ones shares that of one of those."""
    if child.role == PSERVER:
        return child.index
    return plan.config.pservers + child.index % plan.config.trainers


def _hosts_flag(hosts: list[Host], flavour: Flavour) -> list[str]:
    names = ",".join(f"{h.name}:{h.slots}" if h.slots else h.name for h in hosts)
    return ["--host" if flavour is Flavour.OPEN_MPI else "-hosts", names]


def _flavour(plan: Plan) -> Flavour:
    command = shlex.split(plan.config.mpirun)[:1]
    try:
        done = subprocess.run(
            [*command, "--version"], capture_output=True, text=True, timeout=_VERSION_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(
            f"--on mpi cannot run {plan.config.mpirun!r}: {error}; nothing was started.",
            hint="Install Open MPI or MPICH, or name the command by --mpirun.",
        ) from error
    # mpirun.openmpi (OpenRTE) 4.1.4 … www.open-mpi.org; mpirun (Open MPI) 5.0.6
    is_open_mpi = "open-mpi" in done.stdout.lower().replace(" ", "-")
    return Flavour.OPEN_MPI if is_open_mpi else Flavour.HYDRA


def _address(plan: Plan) -> str:
    """The own address that ranks dial: the one towards the first host, unless it is set."""
    config = plan.config
    if config.address or not config.hosts:
        return config.address or LOOPBACK
    host = hosts_in(config.hosts)[0].name
    try:
        family = socket.getaddrinfo(host, _ANY_PORT, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family[0], socket.SOCK_DGRAM) as probe:
            probe.connect(family[4])
            return str(probe.getsockname()[0])
    except OSError as error:
        raise ConfigError(
            f"--hosts: {host} has no address that this host reaches: {error}; nothing was started.",
            hint="Correct the name, or set --address to the own address that the hosts reach.",
        ) from error


def _started(line: list[str], environ: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(
            line,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            process_group=0,
            preexec_fn=die_with_parent,
        )
