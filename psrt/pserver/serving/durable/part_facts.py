"""The state of a pserver outside its tables, as JSON, for its part of a cut and for local cuts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from psrt.core.errors import ErrorCode, plain
from psrt.core.specs import TableSpec, to_plain
from psrt.pserver.decisions import Freeze, PserverState, WaitingCall, dump


def part_facts(
    state: PserverState,
    freeze: Freeze,
    others: Mapping[int, tuple[int, str]],
    incarnation: int,
    specs: Sequence[TableSpec],
) -> dict[str, Any]:
    """Job, time, participants and decisions of a pserver when it freezes its tables.

    `others` are incarnation and position of the trainers that do not run. `incarnation` and `specs`
    are those of the tables.
    """
    job = state.job
    assert job is not None, "a cut needs a job"
    identity = {"id": job.job_id, "trainers": job.trainers, "mode": to_plain(job.mode)}
    return {
        "job": {**identity, "plan_hash": job.plan_hash},
        "round": state.rounds.newest_open if state.rounds else 0,
        "step": 0 if state.rounds else state.global_step,
        "participants": _participants(freeze.calls, others),
        "incarnation": incarnation,
        "state": dump(state, freeze.number),
        "specs": [to_plain(spec) for spec in specs],
    }


def local_facts(
    state: PserverState, process: int, incarnation: int, specs: Sequence[TableSpec]
) -> dict[str, Any]:
    """The decisions of a pserver between two updates, for a local cut.

    `process` is the number of this process among those that have served the tables. The job is
    `over` once no trainer will ask for anything again, `failed` is the error that has ended it.
    """
    error = state.aborted or state.lost
    return {
        "process": process,
        "incarnation": incarnation,
        "state": dump(state, state.cuts.frozen_number),
        "over": state.job is not None and state.has_ended,
        "failed": None if error is None or error.code is ErrorCode.STOPPING else plain(error),
        "specs": [to_plain(spec) for spec in specs],
    }


def _participants(
    calls: Sequence[WaitingCall], others: Mapping[int, tuple[int, str]]
) -> list[list[Any]]:
    """Trainer, incarnation and position of all trainers that have pushed."""
    running = {call.trainer: (call.incarnation, call.content.position) for call in calls}
    taking_part = {**others, **running}
    return [[trainer, *taking_part[trainer]] for trainer in sorted(taking_part)]
