"""The durable part of a pserver's decisions: on disk, or at a backup; pure.

A *point* is the end of all pushes at a moment between two updates. It is confirmed once the tables
of that moment are safe. Replies then name, for each trainer, the last push of its durable prefix:
the highest sequence such that this pserver would recover it and all before it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from psrt.pserver.decisions.member import MemberState
from psrt.pserver.decisions.pserver_state import PserverState


class DurablePoint(NamedTuple):
    """Incarnation and last push of the prefix of each trainer, trainers that had completed, the
    number of pushes applied by this process, and the time."""

    prefixes: Mapping[int, tuple[int, int]]
    completed: frozenset[int]
    pushes: int
    taken_s: float

    def has_all_of(self, later: DurablePoint) -> bool:
        """True if nothing was pushed or completed until a later point."""
        return self[:3] == later[:3]


def is_between_updates(state: PserverState) -> bool:
    """True if no push or round is being applied."""
    is_closing = state.rounds is not None and state.rounds.is_closing
    return not (is_closing or state.pushes.is_applying)


def point_of(state: PserverState, now: float) -> DurablePoint:
    """The point of a state between two updates."""
    applied = state.pushes.admitted if state.rounds is None else state.rounds.applied
    members = state.members.members
    completed = frozenset(m.trainer for m in members if m.state is MemberState.COMPLETED)
    return DurablePoint(applied.prefixes(), completed, applied.count, now)


class DurableProgress:
    """The newest confirmed point; any thread asks, one at a time confirms."""

    def __init__(self) -> None:
        self._confirmed = DurablePoint({}, frozenset(), 0, -math.inf)
        self._confirmed_s = math.nan

    def confirm(self, point: DurablePoint, now: float) -> None:
        """Record that a point is durable; an older one than that before changes nothing."""
        if point.taken_s >= self._confirmed.taken_s:
            self._confirmed, self._confirmed_s = point, now

    def durable_to(self, trainer: int, incarnation: int) -> int:
        """The last push of the durable prefix of a trainer's process, 0 = none."""
        process, sequence = self._confirmed.prefixes.get(trainer, (0, 0))
        return sequence if process == incarnation else 0

    def has_recorded(self, trainer: int) -> bool:
        """True if the COMPLETE of a trainer is durable."""
        return trainer in self._confirmed.completed

    def describe(self, state: PserverState, now: float) -> dict[str, Any]:
        """Facts for STATUS: pushes that are applied and not durable, in all and by trainer, and
        seconds since the newest confirmation, None before the first."""
        applied = state.pushes.admitted if state.rounds is None else state.rounds.applied
        age_s = None if math.isnan(self._confirmed_s) else round(now - self._confirmed_s, 3)
        return {
            "durable_lag_pushes": applied.count - self._confirmed.pushes,
            "durable_lags": {
                trainer: sequence - self.durable_to(trainer, incarnation)
                for trainer, (incarnation, sequence) in applied.prefixes().items()
            },
            "durable_age_s": age_s,
        }
