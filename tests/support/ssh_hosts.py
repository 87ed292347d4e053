"""Hosts for tests of SSH: one server of OpenSSH on several addresses of the loopback interface."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.live_pservers import free_port

HOSTS = ("127.0.0.2", "127.0.0.3")
_SERVER = "/usr/sbin/sshd"
_CONFIG = """\
Port {port}
ListenAddress 127.0.0.2
ListenAddress 127.0.0.3
HostKey {directory}/host
AuthorizedKeysFile {directory}/user.pub
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
UsePAM no
PidFile none
MaxStartups 100
"""
_CLIENT = """\
Host 127.0.0.*
  Port {port}
  IdentityFile {directory}/user
  IdentitiesOnly yes
  UserKnownHostsFile {directory}/known_hosts
"""


@contextmanager
def ssh_hosts(directory: Path) -> Iterator[Path]:
    """Run the server; yields the configuration file of a client that knows its key."""
    if not Path(_SERVER).exists() or not shutil.which("ssh-keygen"):
        pytest.skip("needs sshd and ssh-keygen of OpenSSH")
    pytest.importorskip("fabric", reason="needs fabric, of psrt-cluster[ssh]")
    Path("/run/sshd").mkdir(exist_ok=True)
    for name in ("host", "user"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / name)]
        subprocess.run(command, check=True)
    port = free_port()
    server = directory / "sshd_config"
    server.write_text(_CONFIG.format(port=port, directory=directory))
    client = directory / "ssh_config"
    client.write_text(_CLIENT.format(port=port, directory=directory))
    key = " ".join((directory / "host.pub").read_text().split()[:2])
    known = "".join(f"[{host}]:{port} {key}\n" for host in HOSTS)
    (directory / "known_hosts").write_text(known)
    command = [_SERVER, "-D", "-f", str(server), "-E", str(directory / "sshd.log")]
    with subprocess.Popen(command) as process:
        try:
            _wait_until_it_listens(port, process, directory / "sshd.log")
            yield client
        finally:
            process.kill()


def _wait_until_it_listens(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    while process.poll() is None:
        try:
            socket.create_connection((HOSTS[-1], port), 10.0).close()
            return
        except ConnectionRefusedError:
            continue
    pytest.fail(f"sshd ended: {log.read_text()}")
