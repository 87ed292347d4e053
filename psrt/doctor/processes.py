"""Processes of psrt on this host, with the stacks of their threads."""

from __future__ import annotations

import contextlib
import os
import re
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from psrt.core.process import stacks
from psrt.rpc.hosts import split_endpoint
from psrt.status import PserverFacts

_PASSWORD = re.compile(r"(://)[^/@\s]+@")
_STATES = {"T": "stopped", "t": "stopped", "D": "waiting for a disk", "Z": "a zombie"}


@dataclass(frozen=True)
class ProcessReport:
    """`state` is one letter, as in ps; without `stacks` there is a `problem`."""

    pid: int
    command: str
    state: str
    threads: int
    memory_bytes: int
    stacks: str
    problem: str = ""


def process_reports() -> Iterator[ProcessReport]:
    """Each process of psrt on this host that this user may look into; this one is left out."""
    for pid in stacks.processes_with_stacks():
        if pid != os.getpid():
            with contextlib.suppress(OSError):
                yield _report(pid)


def pservers_here(pservers: Iterable[PserverFacts]) -> dict[int, str]:
    """Endpoints of those pservers that run on this host, by the number of their process."""
    return {each.pid: each.endpoint for each in pservers if _is_here(each.endpoint)}


def _is_here(endpoint: str) -> bool:
    """True if the address of an endpoint is one of this host: only such a one can be bound."""
    host, port = split_endpoint(endpoint)
    with contextlib.suppress(OSError):
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as sock:
            sock.bind((address[0], 0))
            return True
    return False


def without_passwords(text: str) -> str:
    """A text without the users and passwords of its URLs."""
    return _PASSWORD.sub(r"\1", text)


def _report(pid: int) -> ProcessReport:
    facts = _facts(pid)
    words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    state = facts.get("State", "?")[:1]
    text, problem = "", ""
    if state in _STATES:
        problem = f"the process is {_STATES[state]}, so its stacks are unknown"
    else:
        text = stacks.stacks_of(pid)
        problem = "" if text else "the process wrote no stacks in time"
    return ProcessReport(
        pid,
        without_passwords(" ".join(words).strip()),
        state,
        int(facts.get("Threads", "0")),
        int(facts.get("VmRSS", "0 kB").split()[0]) * 1024,
        text,
        problem,
    )


def _facts(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    pairs = (line.split(":", 1) for line in lines if ":" in line)
    return {name: value.strip() for name, value in pairs}
