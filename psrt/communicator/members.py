"""State of all trainers of a job on a pserver, and the patience of a trainer with the others.

A wait for another trainer lasts as long as its process computes, however long that takes. A process
that has left is given up by the pservers, or ends the job, unless the job keeps its place. All
other waits end when no pserver has applied an update for some time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from psrt.core.errors import from_code
from psrt.rpc.methods import ENDS_EARLY, TRAINED


@dataclass(frozen=True)
class Members:
    """State of the job on a pserver: state and presence per trainer, and a count of updates.

    `trained` are the trainers that have declared their last push. The job `ends_early` once one
    of them has decided it: in a job file trainer 0.
    """

    states: Sequence[str]
    updates: int
    presence: Sequence[str] = ()
    trained: frozenset[int] = frozenset()
    ends_early: bool = False

    def running(self, me: int) -> list[int]:
        """Trainers other than `me` that may still push."""
        ended = ("completed", "lost")
        return [t for t, state in enumerate(self.states) if t != me and state not in ended]

    def lost(self) -> list[int]:
        return [trainer for trainer, state in enumerate(self.states) if state == "lost"]

    def is_gone(self, trainer: int) -> bool:
        return self._presence(trainer) == "gone"

    def computes(self, trainer: int) -> bool:
        """Return True if the process of a trainer is there and has not declared its last push."""
        return self._presence(trainer) == "present" and trainer not in self.trained

    def describe(self, trainers: Iterable[int]) -> str:
        """A text such as `trainer 1 (gone) and trainer 2`."""
        return " and ".join(f"trainer {t}{' (gone)' * self.is_gone(t)}" for t in trainers)

    def _presence(self, trainer: int) -> str:
        is_running = trainer < len(self.presence) and self.states[trainer] == "running"
        return self.presence[trainer] if is_running else "unknown"


def members_of(status: str | dict[str, Any]) -> Members:
    """Read STATUS of a pserver; raises the error that ended its job."""
    known = json.loads(status) if isinstance(status, str) else status
    if error := known.get("error"):
        raise from_code(error["code"], error["message"], error["hint"])
    trainers = known.get("trainers", [])
    clocks = {clock["clock"]: clock["reached"] for clock in known.get("clocks", [])}
    return Members(
        [str(trainer["state"]) for trainer in trainers],
        known["round"] + known["global_step"],
        [str(trainer.get("presence", "unknown")) for trainer in trainers],
        frozenset(t for t, reached in enumerate(clocks.get(TRAINED, [])) if reached),
        any(clocks.get(ENDS_EARLY, [])),
    )


class Patience:
    """Decides when a wait for other trainers has no prospect any more.

    `policy` is the job's `on_trainer_loss`.
    """

    def __init__(self, patience_s: float, policy: str, now: float) -> None:
        self._patience_s, self._policy = patience_s, policy
        self._moved_s, self._updates = now, -1

    def idle_s(self, members: Members, awaited: Sequence[int], now: float) -> float | None:
        """Seconds in which nothing has changed, once they are too many; None to go on waiting."""
        goes_on = any(self._goes_on(members, trainer) for trainer in awaited)
        if goes_on or members.updates != self._updates:
            self._moved_s, self._updates = now, members.updates
        idle_s = now - self._moved_s
        return idle_s if idle_s >= self._patience_s else None

    def _goes_on(self, members: Members, trainer: int) -> bool:
        """Return True for a trainer that computes, and for one that the pservers will give up."""
        if members.is_gone(trainer):
            return self._policy != "wait"
        return members.computes(trainer)


__all__ = ["Members", "Patience", "members_of"]
