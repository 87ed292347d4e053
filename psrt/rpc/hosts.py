"""Host identity, endpoints, and paths of Unix sockets."""

from __future__ import annotations

import grp
import ipaddress
import os
import shutil
import socket
import stat
import tempfile
from pathlib import Path
from typing import Any

from psrt.core.errors import ConfigError

UNIX_DIR_OFF = "off"
MAX_PORT = 65535

# sockaddr_un.sun_path holds 108 bytes with the final zero.
_MAX_UNIX_PATH_BYTES = 107
_PASSIVE = socket.AI_PASSIVE
_ANY_HOSTS = ("", "0.0.0.0", "::")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def host_id() -> str:
    """An identifier equal in two processes only if they share a kernel and a hostname.

    Containers of one machine share the boot id, but have hostnames of their own.
    """
    try:
        boot_id = _BOOT_ID.read_text().strip()
    except OSError:
        boot_id = "no-boot-id"
    return f"{boot_id}/{socket.gethostname()}"


def join_endpoint(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def split_endpoint(endpoint: str) -> tuple[str, int]:
    """Split `host:port`; an IPv6 host loses its brackets. Raises `ConfigError`."""
    host, _, port = endpoint.rpartition(":")
    if not (port.isascii() and port.isdecimal()) or int(port) > MAX_PORT:
        raise ConfigError(
            f"{endpoint!r} is not an endpoint.",
            hint=f"Write it as host:port, with a port of at most {MAX_PORT}.",
        )
    return host.strip("[]"), int(port)


def listen(host: str, port: int, backlog: int) -> socket.socket:
    """A TCP socket that listens on `host`, a name or an address; on `::` for IPv4 callers, too.

    Raises `OSError`.
    """
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=_PASSIVE)
    family, *_, address = found[0]
    takes_both = address[0] == "::" and socket.has_dualstack_ipv6()
    return socket.create_server(
        address[:2], family=family, backlog=backlog, dualstack_ipv6=takes_both
    )


def reachable(data_endpoint: str, endpoint: str) -> str:
    """Replace the host of a data endpoint that listens on all interfaces by that of `endpoint`."""
    host, port = split_endpoint(data_endpoint)
    if host not in _ANY_HOSTS:
        return data_endpoint
    return join_endpoint(split_endpoint(endpoint)[0], port)


def is_loopback(host: str) -> bool:
    """True if `host` is an address of the loopback interface, or localhost."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:  # a name may be a public address
        return False


def check_loopback(host: str) -> None:
    """Raise `ConfigError` for a host that others can reach."""
    if not is_loopback(host):
        raise ConfigError(
            f"Listening on {host} without encryption was refused: who can read the network could "
            "read and change parameters.",
            hint="Set tls_cert, tls_key and tls_ca (docs/how-to/encrypt-traffic.md), or insecure "
            "(--insecure) on a network that you trust.",
        )


def is_here(host: str) -> bool:
    """True if `host` is or names an address of this host, on which a socket can listen."""
    try:
        found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return any(_can_listen(family, address) for family, *_, address in found)


def _can_listen(family: int, address: Any) -> bool:
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(address)
        except OSError:
            return False
    return True


class UnixSocketPath:
    """A path for one Unix socket in a directory that only this user can write.

    An empty `directory` means a private temporary one, which `remove` deletes with the socket.
    Members of `group`, a name, can use the socket, too. Raises `ConfigError`.
    """

    def __init__(self, directory: str, name: str, group: str = "") -> None:
        self._private = not directory
        self.group = _number_of(group) if group else None
        self.directory = Path(directory or tempfile.mkdtemp(prefix="psrt-"))
        self.path = str(self.directory / name)
        if len(os.fsencode(self.path)) > _MAX_UNIX_PATH_BYTES:
            self.remove()
            raise ConfigError(
                f"The Unix socket path {self.path} is longer than {_MAX_UNIX_PATH_BYTES} bytes.",
                hint=f"Choose a shorter unix_dir, or {UNIX_DIR_OFF!r} to use TCP only.",
            )
        if not self._private:
            self._make_private()

    def admit_group(self) -> None:
        """Let the group use the socket; raises `OSError` if this user is not in it."""
        if self.group is not None:
            for path, mode in ((self.directory, 0o750), (Path(self.path), 0o660)):
                os.chown(path, -1, self.group)
                path.chmod(mode)

    def clear(self) -> None:
        """Delete the socket file, if any."""
        Path(self.path).unlink(missing_ok=True)

    def remove(self) -> None:
        self.clear()
        if self._private:
            shutil.rmtree(self.directory, ignore_errors=True)

    def _make_private(self) -> None:
        """Create the directory 0700; raises `ConfigError` for one that others can write."""
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            state = self.directory.stat()
        except OSError as error:
            raise ConfigError(
                f"The directory {self.directory} for the Unix socket cannot be made: {error}.",
                hint=f"Choose another unix_dir, or {UNIX_DIR_OFF!r} to use TCP only.",
            ) from error
        if state.st_uid != os.getuid() or stat.S_IMODE(state.st_mode) & 0o022:
            raise ConfigError(
                f"The directory {self.directory} for the Unix socket is writable by others.",
                hint="chmod 700 it, or choose another unix_dir.",
            )


def _number_of(group: str) -> int:
    try:
        return grp.getgrnam(group).gr_gid
    except KeyError:
        raise ConfigError(
            f"This host has no group {group!r}.", hint="Check unix_group, or make it: groupadd."
        ) from None
