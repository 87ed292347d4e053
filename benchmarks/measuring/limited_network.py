"""Hosts with slow links on one machine: network namespaces joined by a switch (Linux, root).

    host p0 ── veth, tbf both ways ──┐
    host t0 ── veth, tbf both ways ──┴ bridge in a namespace of its own

Sent data is limited at the host's end of its link, received data at the switch's end. Names begin
with `psrt-<pid>-`. Leaving `limited` removes all of them, so end the processes in them first. The
namespaces have no route to the outside, and their addresses cannot clash with the machine's.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

SWITCH, NETWORK = "switch", "10.99.0"
BURST, LATENCY = "64kb", "50ms"


class Network:
    """Hosts by name; each has one address and one link of `rate_mbit` each way."""

    def __init__(self, hosts: Sequence[str], rate_mbit: float) -> None:
        self._hosts, self._rate_mbit = list(hosts), rate_mbit

    def address(self, host: str) -> str:
        return f"{NETWORK}.{1 + self._hosts.index(host)}"

    def prefix(self, host: str) -> list[str]:
        """The words to put before a command, so that it runs on a host; they keep the pid."""
        return ["ip", "netns", "exec", namespace(host)]

    def sent_bytes(self) -> int:
        """Bytes that all hosts have sent, with headers of Ethernet, IP and TCP."""
        links = _json("-n", namespace(SWITCH), "-s", "link", "show", "type", "veth")
        return sum(int(link["stats64"]["rx"]["bytes"]) for link in links)

    def build(self) -> None:
        _ip("netns", "add", namespace(SWITCH))
        self._in(SWITCH, "link", "add", "br0", "type", "bridge")
        self._in(SWITCH, "link", "set", "br0", "up")
        for host in self._hosts:
            self._plug_in(host)

    def remove(self) -> None:
        """Remove the namespaces that exist; their links go with them."""
        known = {each["name"] for each in _json("netns", "list")}
        for name in (namespace(SWITCH), *map(namespace, self._hosts)):
            if name in known:
                _ip("netns", "delete", name)

    def _plug_in(self, host: str) -> None:
        name, port = namespace(host), f"to-{host}"
        _ip("netns", "add", name)
        ends = ("eth0", "netns", name, "type", "veth", "peer", "name", port)
        _ip("link", "add", *ends, "netns", namespace(SWITCH))
        self._in(SWITCH, "link", "set", port, "master", "br0", "up")
        self._in(host, "address", "add", f"{self.address(host)}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            self._in(host, "link", "set", device, "up")
        self._limit(host, "eth0")
        self._limit(SWITCH, port)

    def _limit(self, host: str, device: str) -> None:
        rate = ("rate", f"{self._rate_mbit}mbit", "burst", BURST, "latency", LATENCY)
        _run("tc", "-n", namespace(host), "qdisc", "add", "dev", device, "root", "tbf", *rate)

    def _in(self, host: str, *words: str) -> None:
        _ip("-n", namespace(host), *words)


@contextlib.contextmanager
def limited(hosts: Sequence[str], rate_mbit: float) -> Iterator[Network]:
    """Hosts that exist until the context is left."""
    if os.geteuid() != 0:
        raise SystemExit("A limited network needs root: run this with sudo, or without a limit.")
    missing = [tool for tool in ("ip", "tc") if shutil.which(tool) is None]
    if missing:
        raise SystemExit(f"A limited network needs {' and '.join(missing)} of iproute2.")
    network = Network(hosts, rate_mbit)
    try:
        network.build()
        yield network
    finally:
        network.remove()


def namespace(host: str) -> str:
    return f"psrt-{os.getpid()}-{host}"


def _ip(*words: str) -> None:
    _run("ip", *words)


def _json(*words: str) -> list[dict[str, Any]]:
    printed = _run("ip", "-json", *words)
    return list(json.loads(printed)) if printed.strip() else []


def _run(*words: str) -> str:
    ran = subprocess.run(words, capture_output=True, text=True)
    if ran.returncode:
        raise SystemExit(f"{' '.join(words)}: {ran.stderr.strip()}")
    return ran.stdout
