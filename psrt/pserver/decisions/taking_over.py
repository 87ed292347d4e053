"""The state of a part that another pserver served, from its last tick on; pure.

The process that takes over serves another part of the job, too. Trainers that were lost there are
not awaited here. One that completed there, and runs here, is: it stays until its pushes are
durable, and sends those again that the last tick lacks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from psrt.pserver.decisions.membership import Member, MemberState
from psrt.pserver.decisions.pserver_state import PserverState
from psrt.pserver.decisions.saved_state import restore


def take_over(
    state: PserverState, saved: Mapping[str, Any], elsewhere: Iterable[Member], now: float
) -> None:
    """Continue with `saved`, a `dump`; `elsewhere` are the members as another part has them."""
    restore(state, saved, now)
    for other in elsewhere:
        member = state.members.member(other.trainer)
        if other.state is MemberState.LOST and member.state is MemberState.RUNNING:
            state.members.lose([other.trainer])
            state.recovery.lost(other.trainer)
    for member in state.members.members:
        if member.state is MemberState.COMPLETED:  # it may ask for the reply to COMPLETE again
            member.is_unconfirmed, member.completed_s = True, now


def using(saved: Mapping[str, Any], elsewhere: Iterable[Member]) -> Collection[int]:
    """The trainers that may use a pserver whose last tick has `saved`.

    Those that run there, and those that run in the part `elsewhere` and may have joined since; but
    none that was lost `elsewhere`.
    """
    here = {trainer for trainer, state, *_ in saved["members"] if state == "running"}
    others = list(elsewhere)
    lost = {member.trainer for member in others if member.state is MemberState.LOST}
    joined = {member.trainer for member in others if member.state is MemberState.RUNNING}
    return (here | joined) - lost


def has_ended(saved: Mapping[str, Any]) -> bool:
    """True if all trainers have completed, or were lost, and at least one has completed."""
    states = {state for _, state, *_ in saved["members"]}
    return "completed" in states and not states & {"running", "unseen"}
