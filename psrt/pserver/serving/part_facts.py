"""The state of a pserver outside its tables, as JSON, for its part of a cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psrt.core.specs import TableSpec, to_plain
from psrt.pserver.decisions import Freeze, MemberState, PserverState, WaitingCall, dump

COMPLETED = "completed"
"""Position of a trainer that has completed."""


def part_facts(
    state: PserverState, freeze: Freeze, incarnation: int, specs: Sequence[TableSpec]
) -> dict[str, Any]:
    """Job, time, participants and decisions of a pserver when it freezes its tables.

    `incarnation` and `specs` are those of the tables.
    """
    job = state.job
    assert job is not None, "a cut needs a job"
    identity = {"id": job.job_id, "trainers": job.trainers, "mode": to_plain(job.mode)}
    return {
        "job": {**identity, "plan_hash": job.plan_hash},
        "round": max((each for _, each in state.rounds.opens()), default=0) if state.rounds else 0,
        "step": state.global_step,
        "participants": _participants(state, freeze.calls),
        "incarnation": incarnation,
        "state": dump(state, freeze.number),
        "specs": [to_plain(spec) for spec in specs],
    }


def _participants(state: PserverState, calls: Sequence[WaitingCall]) -> list[list[Any]]:
    """Trainer, incarnation and position of all trainers that have pushed."""
    taking_part = {call.trainer: (call.incarnation, call.content.position) for call in calls}
    for member in state.members.members:
        if member.state is MemberState.COMPLETED:
            taking_part[member.trainer] = (member.incarnation, COMPLETED)
    return [[trainer, *taking_part[trainer]] for trainer in sorted(taking_part)]
