"""The trainers of a job, as all its pservers see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psrt.status.facts import ClusterFacts, PserverFacts, TrainerFacts
from psrt.status.page.verdict import JobWait
from psrt.status.rates import earlier

MOST_IN_ORDER = 64
"""Of more trainers, those of long waits come first."""


def trainers_of(
    now: ClusterFacts, before: ClusterFacts | None, waits: Sequence[JobWait]
) -> list[dict[str, Any]]:
    """A record for each trainer, those of long waits first; means are those since `before`."""
    known = earlier(before)
    seen: dict[int, list[tuple[TrainerFacts, TrainerFacts | None]]] = {}
    for pserver in now.reached:
        former = _by_number(known.get(pserver.endpoint))
        for each in pserver.trainers:
            seen.setdefault(each.trainer, []).append((each, former.get(each.trainer)))
    records = [_trainer(number, seen[number], waits) for number in sorted(seen)]
    return records if len(records) <= MOST_IN_ORDER else sorted(records, key=_is_usual)


def _is_usual(record: dict[str, Any]) -> bool:
    return not record["is_long"]


def _by_number(pserver: PserverFacts | None) -> dict[int, TrainerFacts]:
    return {each.trainer: each for each in (pserver.trainers if pserver else ())}


def _trainer(
    number: int, seen: Sequence[tuple[TrainerFacts, TrainerFacts | None]], waits: Sequence[JobWait]
) -> dict[str, Any]:
    """A trainer has been silent since its latest call to any pserver."""
    silent = [each.silent_s for each, _ in seen if each.silent_s is not None]
    first = seen[0][0]
    return {
        "trainer": number,
        "state": first.state,
        "presence": first.presence,
        "silent_s": min(silent, default=None),
        "waits_for": next((each.awaited for each in waits if number in each.waiting), ""),
        "waited_s": next((each.waited_s for each in waits if number in each.waiting), None),
        "is_awaited": any(number in each.missing for each in waits),
        "is_long": any(number in (*each.missing, *each.waiting) for each in waits if each.is_long),
        "staleness": _mean(
            [(now.staleness, then.staleness if then else None) for now, then in seen]
        ),
        "stalest": max((now.staleness[2] for now, _ in seen if now.staleness), default=None),
        "late_s": _mean([(now.late, then.late if then else None) for now, then in seen]),
    }


def _mean(
    pairs: Sequence[tuple[tuple[float, ...] | None, tuple[float, ...] | None]],
) -> float | None:
    """The mean of (count, total, …) since the earlier ones, over all pservers; None without any."""
    count, total = 0.0, 0.0
    for now, then in pairs:
        if now is not None:
            count += now[0] - (then[0] if then else 0)
            total += now[1] - (then[1] if then else 0)
    return total / count if count > 0 else None
