"""Lines of progress, what a failing round prints, and totals as JSON."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from tests.faults.drawing import FaultRound
from tests.faults.rounds import Outcome

LAST_LINES = 15


def line_of(outcome: Outcome) -> str:
    """One line about a round."""
    round = outcome.round
    ends = [_summed(ends) for ends in outcome.ends]
    state = "BROKEN" if outcome.violation else "ok"
    return (
        f"seed {round.seed:5} {state:6} {outcome.took_s:5.1f} s  {round.mode:13} {round.carrier:4} "
        f"{round.trainers}x{'/'.join(map(str, round.pservers[: len(ends)]))}  "
        f"{len(outcome.struck)} faults, {outcome.cuts} cuts  {' | '.join(ends)}"
    )


def _summed(ends: dict[str, str]) -> str:
    counts = Counter(end.split(":")[0] for end in ends.values())
    return ", ".join(f"{count} {end}" for end, count in sorted(counts.items()))


def repeat_of(round: FaultRound, options: str) -> str:
    """The command that runs one round again."""
    return f"bin/faults --rounds 1 --seed {round.seed}{options}"


def failure_of(outcome: Outcome, options: str) -> str:
    """All that is known about a round that broke a promise."""
    state = f"BROKEN: {outcome.violation}" if outcome.violation else "ok"
    lines = [state, str(outcome.round), "what struck:"]
    lines += [f"  {each}" for each in outcome.struck] or ["  nothing"]
    for number, ends in enumerate(outcome.ends):
        lines += [f"attempt {number}, {name}: {end}" for name, end in sorted(ends.items())]
    for log in outcome.logs:
        text = log.read_text(errors="replace").splitlines()[-LAST_LINES:]
        if text:
            where = log.relative_to(outcome.place) if outcome.place else log
            lines += [f"last lines of {where}:", *(f"    {line}" for line in text)]
    lines.append(f"repeat it: {repeat_of(outcome.round, options)}")
    return "\n".join(lines)


class Totals:
    """Counts over all rounds."""

    def __init__(self) -> None:
        self.rounds = self.cuts = 0
        self.took_s = 0.0
        self.broken: list[dict[str, Any]] = []
        self.modes: Counter[str] = Counter()
        self.carriers: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.ends: Counter[str] = Counter()
        self.checks: Counter[str] = Counter()

    def add(self, outcome: Outcome) -> None:
        round = outcome.round
        self.rounds, self.cuts = self.rounds + 1, self.cuts + outcome.cuts
        self.took_s += outcome.took_s
        self.modes[round.mode] += 1
        self.carriers[round.carrier] += 1
        self.faults.update(kind_of(each) for each in outcome.struck)
        self.checks.update(set(outcome.checks))
        for ends in outcome.ends:
            self.ends.update(end.split(":")[0] for end in ends.values())
        if outcome.violation:
            found = {"violation": outcome.violation, "repeat": outcome.repeat}
            self.broken.append({"seed": round.seed, **found})

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(self.plain(), indent=1) + "\n")

    def plain(self) -> dict[str, Any]:
        """The totals as JSON has them."""
        counters = ("modes", "carriers", "faults", "ends", "checks")
        plain = {name: dict(getattr(self, name).most_common()) for name in counters}
        whole = {"rounds": self.rounds, "broken": self.broken, "cuts": self.cuts}
        return {**whole, "s": round(self.took_s, 1), **plain}


def kind_of(fault: str) -> str:
    """A fault without its numbers."""
    for kind in (
        "is cut",
        "swallows all",
        "stops for a while",
        "cannot be reached",
        "is killed for good",
        "started again with --recover",
        "all others are killed",
        "is killed when",
        "is full",
        "is read-only",
        "asked for a cut",
        "stopped by its failpoint",
        "killed by its failpoint",
    ):
        if kind in fault:
            return kind
    return fault
