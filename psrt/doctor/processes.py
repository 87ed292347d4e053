"""Processes of psrt on this host, with the stacks of their threads."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from psrt.core import stacks

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
