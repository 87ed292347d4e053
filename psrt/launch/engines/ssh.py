"""The engine `ssh`: a runner on each host, over a connection of Fabric.

Fabric reads the configuration of OpenSSH: names, ports, users, keys, jump hosts. Keys of hosts must
be known, as `ssh` demands: a stranger in the place of a host would run the job's program.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from psrt.core.errors import ConfigError, JobError
from psrt.core.extras import required
from psrt.launch.hosts import Host, hosts_in, placed
from psrt.launch.plan import PSERVER, ChildId, Plan
from psrt.launch.plan_text import commands_text
from psrt.launch.runners import RunnerConnection, RunnerEngine, runner_command

_CONNECT_S = 10
_KEEPALIVE_S = 10
_AT_ONCE = 32
_CHUNK_BYTES = 65536
_SYSTEM_HOST_KEYS = "/etc/ssh/ssh_known_hosts"


def ssh_engine(plan: Plan, say: Callable[[str], None]) -> RunnerEngine:
    """Return the engine; raises `ConfigError` without Fabric, hosts or enough slots."""
    fabric = required("fabric", "ssh", "--on ssh")
    paramiko = required("paramiko", "ssh", "--on ssh")
    return RunnerEngine("ssh", SshReach(Placement(plan), fabric, paramiko), plan, say)


def described(plan: Plan) -> str:
    """The hosts, the command of their runners, files that are sent, and all processes."""
    placement = Placement(plan)
    lines = [f"# on each host: {placement.command}"]
    lines += [f"#   ssh {host.name}" for host in placement.hosts]
    sent = ", ".join(plan.files) or f"nothing; all hosts share {Path.cwd()}"
    lines += [f"# sent to each host: {sent}", ""]
    return "\n".join(lines) + commands_text(plan, lambda child: placement.host(child).name)


class Placement:
    """The host of each process of a plan: pservers in turn over all hosts, then trainers."""

    def __init__(self, plan: Plan) -> None:
        config = plan.config
        if not config.hosts:
            raise ConfigError(
                "--on ssh needs --hosts; nothing was started.",
                hint="Write --hosts a:2,b:2, or a file with one host a line.",
            )
        self.hosts = hosts_in(config.hosts)
        self._pservers = config.pservers
        self._places = placed(self.hosts, config.pservers + config.trainers)
        self.command = shlex.join(runner_command(config.python))
        self.ssh_config = config.ssh_config

    def place(self, child: ChildId) -> int:
        """The number of the host; a trainer beyond the first ones begins the order again."""
        trainers = self._places[self._pservers :]
        if child.role == PSERVER:
            return self._places[child.index]
        return trainers[child.index % len(trainers)]

    def host(self, child: ChildId) -> Host:
        return self.hosts[self.place(child)]


class SshReach:
    """Connections to all hosts, opened side by side."""

    def __init__(self, placement: Placement, fabric: Any, paramiko: Any) -> None:
        self._placement, self._fabric, self._paramiko = placement, fabric, paramiko
        self._sessions: list[Any] = []
        self._pool = ThreadPoolExecutor(_AT_ONCE, "ssh")
        self._opening: list[Future[RunnerConnection]] = []

    def connections(self) -> list[RunnerConnection] | None:
        if not self._opening:
            hosts = self._placement.hosts
            self._opening = [self._pool.submit(self._open, host) for host in hosts]
        if not all(each.done() for each in self._opening):
            return None
        return [each.result() for each in self._opening]

    def place(self, child: ChildId) -> int:
        return self._placement.place(child)

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        for session in self._sessions:
            session.close()
            session.client.close()  # fabric leaves a connection whose key was refused

    def _open(self, host: Host) -> RunnerConnection:
        config = self._fabric.Config(runtime_ssh_path=self._placement.ssh_config or None)
        session = self._fabric.Connection(host.name, config=config, connect_timeout=_CONNECT_S)
        self._sessions.append(session)
        self._know_hosts(session)
        try:
            session.open()
            session.transport.set_keepalive(_KEEPALIVE_S)
            channel = session.transport.open_session(timeout=_CONNECT_S)
            channel.exec_command(self._placement.command)
        except (OSError, self._paramiko.SSHException) as error:
            raise _unreachable(host, error) from error
        return RunnerConnection(host.name, ChannelLink(channel), session.host)

    def _know_hosts(self, session: Any) -> None:
        """Accept hosts with known keys only, unless the configuration admits others."""
        checks = str(session.ssh_config.get("stricthostkeychecking", "yes")).lower()
        if checks not in ("no", "off"):
            session.client.set_missing_host_key_policy(self._paramiko.RejectPolicy())
        default = f"{Path.home()}/.ssh/known_hosts"
        for file in session.ssh_config.get("userknownhostsfile", default).split():
            with contextlib.suppress(FileNotFoundError):
                session.client.load_system_host_keys(str(Path(file).expanduser()))
        with contextlib.suppress(FileNotFoundError):
            session.client.load_system_host_keys(_SYSTEM_HOST_KEYS)


class ChannelLink:
    """A channel of SSH with the standard streams of a runner."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel
        self._words = b""

    def fileno(self) -> int:
        return int(self._channel.fileno())

    def send(self, raw: bytes) -> None:
        self._channel.sendall(raw)

    def receive(self) -> bytes | None:
        while self._channel.recv_stderr_ready():
            self._words = (self._words + self._channel.recv_stderr(_CHUNK_BYTES))[-_CHUNK_BYTES:]
        if self._channel.recv_ready():
            return bytes(self._channel.recv(_CHUNK_BYTES))
        is_over = self._channel.closed or self._channel.eof_received
        return None if is_over else b""

    def end(self) -> None:
        with contextlib.suppress(OSError):
            self._channel.shutdown_write()

    def close(self) -> None:
        self._channel.close()

    def last_words(self) -> str:
        return self._words.decode(errors="replace").strip()


def _unreachable(host: Host, error: Exception) -> JobError:
    return JobError(
        f"host {host.name} cannot be reached by SSH: {error or type(error).__name__}; psrt started "
        "nothing.",
        hint=f"Make `ssh {host.name} true` work without a password, with its key in known_hosts.",
    )
