"""Hosts on a switch: a network namespace for each process of a round, joined by a bridge.

The lab itself is in one, too (`enter_own`), where its proxies listen: nothing of a round is in the
network of the machine. A host that is cut off sees no end of its link; its packets are dropped.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
from collections.abc import Iterable

NETWORK, HUB = "10.77.0", "10.77.0.1"
"""The network of all hosts, and the address of the lab."""

VARIABLE = "LAB_NAMESPACE"
"""The variable that names the namespace of a process to it."""

_BRIDGE = "psrt-switch"
_CLONE_NEWNET = 0x40000000
_DISABLED, _FORWARDING = "0", "3"  # states of a port of a bridge
_libc = ctypes.CDLL(None, use_errno=True)
_is_inside = False


def can_make() -> bool:
    """True if this user may make namespaces, and `ip` and `bridge` are there."""
    probe = f"psrt-probe-{os.getpid()}"
    try:
        _run("bridge", "-Version")
        _run("ip", "netns", "add", probe)
    except (OSError, subprocess.CalledProcessError):
        return False
    _run("ip", "netns", "delete", probe)
    return True


def enter_own() -> None:
    """Move the calling thread, and those that it will start, to a namespace with a switch, once."""
    global _is_inside
    if _is_inside:
        return
    _check(_libc.unshare(_CLONE_NEWNET))
    _run("ip", "link", "set", "lo", "up")
    _run("ip", "link", "add", _BRIDGE, "type", "bridge", "forward_delay", "0", "stp_state", "0")
    _run("ip", "address", "add", f"{HUB}/24", "dev", _BRIDGE)
    _run("ip", "link", "set", _BRIDGE, "up")
    _is_inside = True


def enter(namespace: str) -> None:
    """Move the calling thread, and those that it will start, to a namespace."""
    descriptor = os.open(namespace, os.O_RDONLY)
    try:
        _check(_libc.setns(descriptor, _CLONE_NEWNET))
    finally:
        os.close(descriptor)


class Hosts:
    """One host for each of `names`; `close` removes them."""

    def __init__(self, names: Iterable[str]) -> None:
        self._numbers = {name: number for number, name in enumerate(names, 2)}
        for number in self._numbers.values():
            _make(number)

    def address_of(self, name: str) -> str:
        return f"{NETWORK}.{self._numbers[name]}"

    def namespace_of(self, name: str) -> str:
        return f"/run/netns/{_name(self._numbers[name])}"

    def cut_off(self, name: str) -> None:
        """Drop all packets from and to a host."""
        self._set_port(name, _DISABLED)

    def mend(self, name: str) -> None:
        """Forward packets again; connections go on when their ends try again."""
        self._set_port(name, _FORWARDING)

    def close(self) -> None:
        """Remove the hosts; their links first, which a namespace would keep for a while."""
        for number in self._numbers.values():
            with contextlib.suppress(subprocess.CalledProcessError):
                _run("ip", "link", "delete", f"host{number}")
                _run("ip", "netns", "delete", _name(number))

    def _set_port(self, name: str, state: str) -> None:
        port = f"host{self._numbers[name]}"
        _run("bridge", "link", "set", "dev", port, "state", state)


def _make(number: int) -> None:
    namespace, port = _name(number), f"host{number}"
    _run("ip", "netns", "add", namespace)
    _run(*f"ip link add {port} type veth peer name eth0 netns {namespace}".split())
    _run(*f"ip link set {port} master {_BRIDGE} up".split())
    _run(*f"ip -n {namespace} address add {NETWORK}.{number}/24 dev eth0".split())
    for link in ("eth0", "lo"):
        _run(*f"ip -n {namespace} link set {link} up".split())


def _name(number: int) -> str:
    return f"psrt-{os.getpid()}-{number}"


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=30)


def _check(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
