"""The first line of the page: is the job held up, by whom, since when, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from psrt.status.facts import ClusterFacts
from psrt.status.waits import Wait, named, waits

LONG_S = 5.0
"""A wait of a step that lasts longer holds the job up; shorter ones are part of every round."""


@dataclass(frozen=True)
class Verdict:
    """`level` is ok, wait, bad, or idle; `since_s` is None if it is not known."""

    level: str
    text: str
    detail: str = ""
    since_s: float | None = None


@dataclass(frozen=True)
class JobWait:
    """A wait, with all pservers at which it was found."""

    where: tuple[str, ...]
    text: str
    who: str
    awaited: str
    on: str
    waited_s: float | None
    silent_s: float | None
    waiting: tuple[int, ...]
    missing: tuple[int, ...]
    is_long: bool


def merged_waits(facts: ClusterFacts) -> list[JobWait]:
    """Waits of a job, each once; the longest first."""
    found: dict[tuple[str, str, str], list[Wait]] = {}
    for wait in waits(facts):
        found.setdefault((wait.who, wait.on, wait.awaited), []).append(wait)
    merged = [_merged(same) for same in found.values()]
    return sorted(merged, key=lambda each: -(each.waited_s or 0.0))


def verdict_of(facts: ClusterFacts, found: Sequence[JobWait]) -> Verdict:
    """The most important thing about a job, in words."""
    if not facts.reached:
        return Verdict("bad", "No pserver answers.", "Compare the endpoints with those of the job.")
    problems = [each.problem for each in facts.reached if each.problem]
    if problems:
        return Verdict("bad", "The job has a problem.", problems[0])
    if facts.unreachable:
        lost = ", ".join(each.endpoint for each in facts.unreachable)
        return Verdict("bad", f"{lost} does not answer.", facts.unreachable[0].reason)
    long = [each for each in found if each.is_long]
    if long:
        return Verdict("wait", f"{_capital(long[0].text)}.", _advice(long[0]), long[0].waited_s)
    return _without_waits(facts)


def _without_waits(facts: ClusterFacts) -> Verdict:
    states = [each.state for pserver in facts.reached for each in pserver.trainers]
    if not states:
        return Verdict("idle", "No trainer has come yet.", "The job begins with its first trainer.")
    if all(state in ("completed", "lost") for state in states):
        return Verdict("idle", "All trainers have ended.")
    return Verdict("ok", "Nobody waits for long.")


def _merged(same: Sequence[Wait]) -> JobWait:
    first = same[0]
    waited_s, silent_s = _longest(same, "waited_s"), _longest(same, "silent_s")
    text = replace(first, waited_s=None).text
    is_long = waited_s is None or waited_s >= LONG_S
    where = tuple(each.where for each in same)
    facts = first.who, first.awaited, first.on, waited_s, silent_s, first.waiting, first.missing
    return JobWait(where, text, *facts, is_long)


def _longest(same: Sequence[Wait], name: str) -> float | None:
    known = [value for each in same if (value := getattr(each, name)) is not None]
    return max(known, default=None)


def _advice(wait: JobWait) -> str:
    """Advice about trainers that others wait for."""
    if not wait.missing:
        return ""
    them = named(wait.missing)
    if wait.awaited.endswith("to start"):
        return f"Start {them} with the same --trainers and job."
    if len(wait.missing) == 1:
        return f"See the log of {them}; kill -QUIT writes its stacks there."
    return f"See the logs of {them}; kill -QUIT writes their stacks there."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
