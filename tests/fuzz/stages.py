"""Frames inside processes of their own, drawn or guided by coverage."""

from __future__ import annotations

import importlib.util
import logging
import re
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.fuzz.parsers import Fuzzer
from tests.fuzz.seeds import frames
from tests.support.many_seeds import results_of

FRAMES_OF_A_SEED = 20_000
_UNITS = re.compile(rb"stat::number_of_executed_units: (\d+)")
_COVERED = re.compile(rb"cov: (\d+) ft: (\d+)")
_LAST_LINES = 40


@dataclass
class Drawn:
    """The totals of many seeds."""

    frames: Counter[str] = field(default_factory=Counter)
    outcomes: set[str] = field(default_factory=set)
    defects: list[str] = field(default_factory=list)
    slowest_s: float = 0.0
    rss_mib: list[int] = field(default_factory=list)

    def report(self) -> dict[str, Any]:
        """Facts for the report; `rss_mib` is the largest process, early and at the end."""
        return {
            "frames": sum(self.frames.values()),
            "by_target": dict(self.frames),
            "outcomes": len(self.outcomes),
            "slowest_s": round(self.slowest_s, 3),
            "rss_mib": [max(self.rss_mib[:4], default=0), max(self.rss_mib[-4:], default=0)],
        }


def drawn(count: int, seed: int, jobs: int, minutes: float | None) -> Drawn:
    """Run `count` drawn frames, in `jobs` processes."""
    totals, most = Drawn(), min(count, FRAMES_OF_A_SEED)
    seeds = range(seed, seed + -(-count // FRAMES_OF_A_SEED))
    for part in results_of(partial(_of_seed, most), seeds, jobs, minutes):
        totals.frames.update(part.frames)
        totals.outcomes |= part.outcomes
        totals.defects += part.defects
        totals.slowest_s = max(totals.slowest_s, part.slowest_s)
        totals.rss_mib += part.rss_mib
    return totals


def _of_seed(count: int, seed: int) -> Drawn:
    logging.disable(logging.CRITICAL)
    fuzzer = Fuzzer(seed)
    try:
        fuzzer.run(count)
    finally:
        fuzzer.close()
        logging.disable(logging.NOTSET)
    tally = fuzzer.tally
    rss_mib = _rss_mib()
    defects = [f"seed {seed}: {each}" for each in tally.defects]
    return Drawn(Counter(tally.frames), tally.outcomes, defects, tally.slowest_s, [rss_mib])


def _rss_mib() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() >> 20


def guided(count: int, seed: int) -> dict[str, Any]:
    """Run `count` frames guided by coverage; says so where atheris is not installed."""
    if importlib.util.find_spec("atheris") is None:
        return {"frames": 0, "problem": "atheris is not installed"}
    with tempfile.TemporaryDirectory(prefix="psrt-fuzz-") as corpus:
        for number, frame in enumerate(frames()):
            Path(corpus, f"seed-{number}").write_bytes(b"\1" + frame)
        command = sys.executable, "-m", "tests.fuzz.guided", str(count), str(seed), corpus
        ended = subprocess.run(command, capture_output=True, check=False)
    units, covered = _UNITS.search(ended.stderr), _COVERED.findall(ended.stderr)
    last = ended.stderr.decode(errors="replace").splitlines()[-_LAST_LINES:]
    return {
        "frames": int(units[1]) if units else 0,
        "branches": int(covered[-1][0]) if covered else 0,
        "defects": ["\n".join(last)] if ended.returncode else [],
    }
