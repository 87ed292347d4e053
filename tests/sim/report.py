"""Results of histories: what a broken one prints, and totals as JSON."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.sim.kinds import KINDS, drawn_of
from tests.sim.mutations import MUTATIONS


@dataclass(frozen=True)
class Draw:
    """Draws of all seeds: of one kind of history or "" = any, of one mode or None = any; small
    ones or not, but if of any kind."""

    kind: str = ""
    mode: str | None = None
    is_small: bool = False
    planted: str = ""
    show: bool = False


@dataclass
class Result:
    """One history, as its process reports it; `text` is for the terminal."""

    kind: str
    mode: str
    violation: str
    repeat: str
    cuts: int
    ends: list[str]
    text: str = ""


def result_of(draw: Draw, seed: int) -> Result:
    """Run the history of a seed; a broken one again and again, with fewer faults."""
    if not draw.kind:
        kind, mode, is_small = drawn_of(seed)
        draw = replace(draw, kind=kind, mode=mode, is_small=is_small)
    if not draw.planted:
        return _result_of(draw, seed)
    with MUTATIONS[draw.planted].planted():
        return _result_of(draw, seed)


def _result_of(draw: Draw, seed: int) -> Result:
    kind, asked = KINDS[draw.kind], (seed, draw.mode, draw.is_small)
    verdict = kind.run(*asked)
    repeat = repeat_of(draw, seed)
    lines = verdict.trace if draw.show else []
    if verdict.violation:
        least = str(kind.shrunk(*asked))
        lines = [*lines, f"BROKEN: {verdict.violation}", least, f"repeat it: {repeat}", ""]
    ends = [end.split(":")[0] for end in verdict.ends.values()]
    named = f"{draw.kind}, small" if draw.is_small else draw.kind
    mode = verdict.scenario.mode
    return Result(named, mode, verdict.violation, repeat, verdict.cuts, ends, "\n".join(lines))


def repeat_of(draw: Draw, seed: int) -> str:
    """The command that runs one history again."""
    options = f" --{draw.kind}" if draw.kind != "plain" else ""
    options += " --small" if draw.is_small else ""
    options += f" --mode {draw.mode}" if draw.mode else ""
    options += f" --planted {draw.planted!r}" if draw.planted else ""
    return f"python -m tests.sim --histories 1 --first {seed}{options}"


@dataclass
class Totals:
    """Counts over all histories."""

    histories: int = 0
    cuts: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    modes: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    broken: list[dict[str, Any]] = field(default_factory=list)

    def add(self, result: Result) -> None:
        self.histories, self.cuts = self.histories + 1, self.cuts + result.cuts
        self.kinds[result.kind] += 1
        self.modes[result.mode] += 1
        self.ends.update(result.ends)
        if result.violation:
            self.broken.append({"violation": result.violation, "repeat": result.repeat})

    def line(self, took_s: float) -> str:
        return (
            f"{self.histories} histories in {took_s:.1f} s, {len(self.broken)} broken, "
            f"{self.cuts} cuts; {dict(self.ends)}"
        )

    def write(self, path: Path, took_s: float) -> None:
        counters = {n: dict(getattr(self, n).most_common()) for n in ("kinds", "modes", "ends")}
        whole = {"histories": self.histories, "broken": self.broken, "cuts": self.cuts}
        path.write_text(json.dumps({**whole, "s": round(took_s, 1), **counters}, indent=1) + "\n")
