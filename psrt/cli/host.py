"""Model and features of this host's CPU, from Linux; elsewhere from Python."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")


@dataclass(frozen=True)
class Cpu:
    """`features` are the kernel's names of instruction sets: `avx2`, `avx512f`."""

    model: str
    features: frozenset[str]


def cpu(cpuinfo: Path = CPUINFO) -> Cpu:
    """Return the first processor of `cpuinfo`; without that file, no features."""
    try:
        text = cpuinfo.read_text()
    except OSError:
        text = ""
    facts = _facts(text.partition("\n\n")[0])
    features = facts.get("flags") or facts.get("Features") or ""
    return Cpu(facts.get("model name") or platform.machine(), frozenset(features.split()))


def _facts(lines: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in lines.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}
