"""The decisions of a pserver as STATUS shows them."""

from __future__ import annotations

from typing import Any

from psrt.core.errors import plain
from psrt.pserver.decisions.job_identity import identity
from psrt.pserver.decisions.pserver_state import PserverState


def describe(state: PserverState, now: float) -> dict[str, Any]:
    """Job, rounds, clocks and members as plain data."""
    state.update_presence(now)
    rounds = state.rounds
    return {
        **identity(state.job),
        "round": state.open_round,
        "rounds": rounds.opens() if rounds is not None else [],
        "waiting": rounds.waiting() if rounds is not None else [],
        "global_step": state.global_step,
        "clocks": state.clocks.describe(),
        "trainers": state.members.records(now),
        "recovers_from": state.recovery.missing,
        "error": plain(state.aborted or state.lost),
    }
