"""The decisions of a pserver as plain data, for the part of a cut, and back from it.

Contains all that a recovered pserver needs besides its tables: members, open rounds, push keys
that were applied, trainers that have trained. Values are JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psrt.core.specs import from_plain, to_plain
from psrt.pserver.decisions.job_identity import JobIdentity
from psrt.pserver.decisions.membership import MemberState
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
    """Continue with a state that `dump` returned; `state` is new. Returns the job."""
    facts = saved["job"]
    mode = from_plain(facts["mode"])
    job = JobIdentity(facts["id"], facts["plan_hash"], facts["trainers"], mode)
    state.expect(job)
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
    state.recovery = Recovery(awaited, saved["cut"])
    state.recovered(now)
    return job
