"""Hosts of a launch with their slots, and the host of each process. Pure but for the file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from psrt.core.errors import ConfigError

_HINT = "Write --hosts a:2,b:2, or a file with lines such as: a slots=2"
_LINE = re.compile(r"(?P<name>\[[^\]]+\]|[^\s:\[\]]+)((:|\s+slots\s*=\s*)(?P<slots>\d+))?")


@dataclass(frozen=True)
class Host:
    """A host as SSH or a scheduler names it; it takes `slots` processes, 0 = any number."""

    name: str
    slots: int = 0


def hosts_in(text: str) -> list[Host]:
    """Return the hosts of a list or of the file that `text` names; raises `ConfigError`.

    A line of a file is `a`, `a:2` or `a slots=2`, as of MPICH and Open MPI; # begins a comment.
    """
    path = Path(text)
    lines = _lines_of(path) if path.is_file() else text.split(",")
    hosts = [_host(line.strip()) for line in lines if line.strip()]
    if not hosts:
        raise ConfigError("--hosts names no host; nothing was started.", hint=_HINT)
    names = [host.name for host in hosts]
    if double := next((name for name in names if names.count(name) > 1), ""):
        raise ConfigError(f"--hosts names {double} twice; nothing was started.", hint=_HINT)
    return hosts


def placed(hosts: Sequence[Host], processes: int) -> list[int]:
    """Return the number of the host for each of so many processes: in turn, while it has slots.

    Raises `ConfigError` if there are too few slots.
    """
    free = [host.slots or processes for host in hosts]
    if sum(free) < processes:
        raise ConfigError(
            f"--hosts has {sum(free)} slots for {processes} processes; nothing was started.",
            hint="Name more hosts or slots, or start fewer pservers and trainers.",
        )
    places: list[int] = []
    while len(places) < processes:
        turn = [number for number, left in enumerate(free) if left]
        places += turn[: processes - len(places)]
        free = [left - 1 if left else 0 for left in free]
    return places


def _lines_of(path: Path) -> list[str]:
    return [line.partition("#")[0] for line in path.read_text(encoding="utf-8").splitlines()]


def _host(text: str) -> Host:
    match = _LINE.fullmatch(text)
    if match is None:
        raise ConfigError(f"--hosts: {text!r} is no host; nothing was started.", hint=_HINT)
    return Host(match["name"].strip("[]"), int(match["slots"] or 0))
