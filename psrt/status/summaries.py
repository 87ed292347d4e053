"""Cuts and errors of a whole job, from the facts of all its pservers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from psrt.core.errors import CATALOGUE, ErrorCode
from psrt.status.facts import ClusterFacts, CutFacts, ErrorFacts


@dataclass(frozen=True)
class JobCuts:
    """The cuts of a job; bytes are those of the parts of all pservers that answer.

    `newest` is the newest complete one, `writing` one under way, `given_up` the latest that was
    given up; each has its number and times in seconds. `complete` and `failed` count ends.
    """

    newest: Mapping[str, Any] | None
    writing: Mapping[str, Any] | None
    given_up: Mapping[str, Any] | None
    proposed: int
    complete: int
    failed: int


@dataclass(frozen=True)
class JobErrors:
    """Errors of one code: their number, the newest one, and what the code means."""

    newest: ErrorFacts
    summary: str
    count: int
    endpoints: tuple[str, ...]


def cuts_of(facts: ClusterFacts) -> JobCuts | None:
    """The cuts of a job; None if it makes none."""
    parts = [each.cuts for each in facts.reached if each.cuts is not None]
    if not parts:
        return None
    return JobCuts(
        _newest(parts),
        _together([each.writing for each in parts], "for_s"),
        _together([each.given_up for each in parts], "age_s"),
        max(each.proposed for each in parts),
        max(each.ends["complete"] for each in parts),
        max(each.ends["given_up"] for each in parts),
    )


def errors_of(facts: ClusterFacts) -> list[JobErrors]:
    """The errors of a job by code, the newest first."""
    found: dict[str, JobErrors] = {}
    for pserver in facts.reached:
        for error in pserver.errors:
            before = found.get(error.code)
            found[error.code] = _with(before, error, pserver.endpoint)
    return sorted(found.values(), key=lambda each: each.newest.age_s)


def _newest(parts: Sequence[CutFacts]) -> Mapping[str, Any] | None:
    """The newest complete cut; one of an earlier process has its number alone."""
    known = max(each.complete for each in parts)
    found = _together([each.newest for each in parts], "age_s")
    if found is not None and found["number"] >= known:
        return found
    return {"number": known} if known else None


def _together(records: Sequence[Mapping[str, Any] | None], time: str) -> Mapping[str, Any] | None:
    """The record of the newest cut: bytes are summed, other facts are those of the latest."""
    given = [each for each in records if each is not None]
    if not given:
        return None
    number = max(each["number"] for each in given)
    same = [each for each in given if each["number"] == number]
    latest = min(same, key=lambda each: each[time])
    sizes = [each["bytes"] for each in same if each.get("bytes") is not None]
    return {**latest, "bytes": sum(sizes)} if sizes else dict(latest)


def _with(before: JobErrors | None, error: ErrorFacts, endpoint: str) -> JobErrors:
    if before is None:
        return JobErrors(error, _meaning(error.code), error.count, (endpoint,))
    newest = min(before.newest, error, key=lambda each: each.age_s)
    endpoints = *before.endpoints, endpoint
    return replace(before, newest=newest, count=before.count + error.count, endpoints=endpoints)


def _meaning(code: str) -> str:
    """The catalogue's summary of a code, which may be one of another release."""
    known = ErrorCode.__members__.get(code)
    return "" if known is None else CATALOGUE[known].summary
