"""The decisions of a pserver as plain data: for STATUS, for the part of a cut, and back from it.

A dump contains all that a recovered pserver needs besides its tables: members, open rounds, push
keys that were applied, trainers that have trained. Values are JSON.

A process that takes over the part of another pserver goes on with the dump of its last tick, and
serves another part of the job, too. Trainers that were lost there are not awaited here. One that
completed there, and runs here, is: it stays until its pushes are durable, and sends those again
that the last tick lacks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from psrt.core.errors import plain
from psrt.core.specs import from_plain, to_plain
from psrt.pserver.decisions.job_identity import JobIdentity, identity
from psrt.pserver.decisions.member import Member, MemberState
from psrt.pserver.decisions.pserver_state import PserverState
from psrt.pserver.decisions.recovery import Recovery
from psrt.rpc.methods import TRAINED


def dump(state: PserverState, cut: int) -> dict[str, Any]:
    """The state at cut `cut`, while no push is under way; the job has begun."""
    job = state.job
    assert job is not None, "a cut needs a job"
    return {
        "job": {
            "id": job.job_id,
            "plan_hash": job.plan_hash,
            "trainers": job.trainers,
            "mode": to_plain(job.mode),
        },
        "cut": cut,
        "members": state.members.dump(),
        "lineages": state.members.lineages.dump(),
        "pushes": state.pushes.dump(),
        "rounds": state.rounds.dump() if state.rounds is not None else [],
        "applied": state.rounds.applied.dump() if state.rounds is not None else [],
        "pservers": state.pservers.dump(),
        "trained": state.clocks.at(TRAINED, 1),  # trainers repeat other clocks
    }


def restore(state: PserverState, saved: Mapping[str, Any], now: float) -> JobIdentity:
    """Continue with a state that `dump` returned; `state` is new. Returns the job.

    A state that `is_beginning` is that of a job before the first push.
    """
    job = _job_of(saved)
    state.expect(job, is_again=True)
    state.members.restore(saved["members"], now)
    if state.members.ended():  # trainers may ask for the reply to COMPLETE again
        for member in state.members.members:
            member.is_unconfirmed = member.state is MemberState.COMPLETED
    state.members.lineages.restore(saved["lineages"])
    state.pushes.restore(saved["pushes"])
    if state.rounds is not None:
        state.rounds.restore(saved["rounds"])
        state.rounds.applied.restore(saved.get("applied", []))
    state.pservers.restore(saved["pservers"])
    state.clocks.restore(TRAINED, saved.get("trained", ()), 1)
    state.cuts.restore(saved["cut"])
    running = (m for m in state.members.members if m.state is MemberState.RUNNING)
    awaited = {member.trainer: member.incarnation for member in running}
    state.recovery = Recovery(awaited, saved["cut"], saved.get("is_beginning", False))
    state.recovered(now)
    return job


def _job_of(saved: Mapping[str, Any]) -> JobIdentity:
    facts = saved["job"]
    mode = from_plain(facts["mode"])
    return JobIdentity(facts["id"], facts["plan_hash"], facts["trainers"], mode)


def begin_anew(state: PserverState, cut: int, trainers: int) -> None:
    """Go on from `cut`, which was restored, with another number of trainers.

    Nobody's retained pushes are awaited: it is not known who had joined again. Each trainer sends
    its own before it reads.
    """
    state.resizing.begin(cut, trainers, [])
    state.resized()
    state.recovery = Recovery({}, cut)


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


def trainers_using(saved: Mapping[str, Any], elsewhere: Iterable[Member]) -> Collection[int]:
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


def describe(state: PserverState, now: float) -> dict[str, Any]:
    """Job, rounds, clocks and members as plain data."""
    state.update_presence(now)
    rounds = state.rounds
    return {
        **identity(state.job),
        "round": state.open_round,
        "rounds": rounds.open_rounds() if rounds is not None else [],
        "waiting": rounds.waiting() if rounds is not None else [],
        "waiting_s": rounds.waiting_s(now) if rounds is not None else {},
        "round_open_s": round(rounds.open_s(now), 3) if rounds is not None else 0.0,
        "round_waits": dict(rounds.lateness) if rounds is not None else {},
        "global_step": state.global_step,
        "clocks": state.clocks.describe(now),
        "open_cut": state.cuts.describe(now),
        "pservers": state.pservers.dump(),
        "trainers": state.members.records(now),
        "recovers_from": state.recovery.missing,
        "error": plain(state.aborted or state.lost),
    }
