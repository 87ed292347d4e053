"""Frames in processes of their own, drawn or guided by coverage, in parts that a ledger keeps."""

from __future__ import annotations

import importlib.util
import logging
import re
import resource
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.fuzz.ledger import Ledger
from tests.fuzz.parsers import Fuzzer
from tests.fuzz.seeds import frames
from tests.support.many_seeds import results_of

FRAMES_OF_A_SEED = 20_000
FRAMES_OF_A_GUIDED_PART = 100_000
_UNITS = re.compile(rb"stat::number_of_executed_units: (\d+)")
_COVERED = re.compile(rb"cov: (\d+) ft: (\d+)")
_LAST_LINES = 40


@dataclass
class Drawn:
    """The totals of a seed, or of many."""

    seed: int = -1
    frames: Counter[str] = field(default_factory=Counter)
    outcomes: set[str] = field(default_factory=set)
    defects: list[str] = field(default_factory=list)
    slowest_s: float = 0.0
    rss_mib: list[int] = field(default_factory=list)

    def add(self, part: Drawn) -> dict[str, Any]:
        """Add the totals of a seed; returns those for a ledger, with the new outcomes alone."""
        new = part.outcomes - self.outcomes
        self.frames.update(part.frames)
        self.outcomes |= new
        self.defects += part.defects
        self.slowest_s = max(self.slowest_s, part.slowest_s)
        self.rss_mib += part.rss_mib
        return {**vars(part), "outcomes": sorted(new)}

    def report(self) -> dict[str, Any]:
        """Facts for the report; `rss_mib` is the largest process, early and at the end."""
        return {
            "frames": sum(self.frames.values()),
            "by_target": dict(self.frames),
            "outcomes": len(self.outcomes),
            "slowest_s": round(self.slowest_s, 3),
            "rss_mib": [max(self.rss_mib[:4], default=0), max(self.rss_mib[-4:], default=0)],
        }


def drawn(count: int, seed: int, jobs: int, minutes: float | None, ledger: Ledger) -> Drawn:
    """Run `count` drawn frames, in `jobs` processes; seeds of the ledger count as run."""
    totals, most = Drawn(), min(count, FRAMES_OF_A_SEED)
    done = ledger.parts("drawn")
    for part in done.values():
        totals.add(_from_ledger(part))
    seeds = (s for s in range(seed, seed + -(-count // FRAMES_OF_A_SEED)) if s not in done)
    for each in results_of(partial(_of_seed, most), seeds, jobs, minutes):
        ledger.add("drawn", each.seed, totals.add(each))
        print(f"{sum(totals.frames.values()):,} frames", file=sys.stderr, flush=True)
    return totals


def _from_ledger(part: dict[str, Any]) -> Drawn:
    return Drawn(**part | {"frames": Counter(part["frames"]), "outcomes": set(part["outcomes"])})


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
    return Drawn(seed, Counter(tally.frames), tally.outcomes, defects, tally.slowest_s, [rss_mib])


def _rss_mib() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() >> 20


def guided(count: int, seed: int, ledger: Ledger) -> dict[str, Any]:
    """Run `count` frames guided by coverage; says so where atheris is not installed."""
    if importlib.util.find_spec("atheris") is None:
        return {"frames": 0, "problem": "atheris is not installed"}
    most = min(count, FRAMES_OF_A_GUIDED_PART)
    with ledger.folder("corpus") as corpus:
        for number, frame in enumerate(frames()):
            Path(corpus, f"seed-{number}").write_bytes(b"\1" + frame)
        for number in range(-(-count // FRAMES_OF_A_GUIDED_PART)):
            if number not in ledger.parts("guided"):
                ledger.add("guided", number, _guided_part(most, seed + number, corpus))
    parts = ledger.parts("guided").values()
    return {
        "frames": sum(part["frames"] for part in parts),
        "branches": max((part["branches"] for part in parts), default=0),
        "defects": [defect for part in parts for defect in part["defects"]],
    }


def _guided_part(count: int, seed: int, corpus: Path) -> dict[str, Any]:
    command = sys.executable, "-m", "tests.fuzz.guided", str(count), str(seed), str(corpus)
    ended = subprocess.run(command, capture_output=True, check=False)
    units, covered = _UNITS.search(ended.stderr), _COVERED.findall(ended.stderr)
    last = ended.stderr.decode(errors="replace").splitlines()[-_LAST_LINES:]
    return {
        "frames": int(units[1]) if units else 0,
        "branches": int(covered[-1][0]) if covered else 0,
        "defects": ["\n".join(last)] if ended.returncode else [],
    }
