"""A pserver that continues with the decisions of a killed one: nothing is applied twice or lost."""

from __future__ import annotations

import json
import math

import pytest

from psrt.core.errors import ErrorCode, JobError, PsrtError
from psrt.core.specs import Async, CommunicationMode, Sync
from psrt.pserver.decisions import (
    JobIdentity,
    Member,
    MemberState,
    PserverState,
    describe,
    dump,
    restore,
    take_over,
    trainers_using,
)
from psrt.pserver.decisions.calls import Apply, Close, SendReply, WaitingCall
from psrt.pserver.decisions.cuts import Cuts
from psrt.pserver.serving.durable.part_facts import local_facts

WAIT_S = 10.0


def state_of(mode: CommunicationMode, trainers: int = 2) -> PserverState:
    """A pserver whose trainers run as processes 100, 101, …"""
    state = PserverState(WAIT_S)
    for trainer in range(trainers):
        state.hello(trainer, 100 + trainer, JobIdentity("job", "plan", trainers, mode), 0.0)
        state.attend(trainer, 100 + trainer, 0.0)
    return state


def recovered(state: PserverState, now: float = 0.0) -> PserverState:
    """A new process with what was written of `state`, as JSON."""
    again = PserverState(WAIT_S, is_gone=lambda trainer, incarnation: None)
    restore(again, json.loads(json.dumps(dump(state, cut=3))), now)
    return again


def call(trainer: int, sequence: int) -> WaitingCall:
    return WaitingCall(trainer, 100 + trainer, sequence, math.inf)


def rejoin(state: PserverState, trainer: int, now: float = 0.0) -> None:
    job = state.job
    assert job is not None
    state.hello(trainer, 100 + trainer, job, now)
    state.attend(trainer, 100 + trainer, now)


def test_a_push_in_the_cut_is_answered_and_a_later_one_is_applied() -> None:
    state = state_of(Async())
    for sequence in (1, 2, 4):  # 3 comes later, over another connection
        first = call(0, sequence)
        state.push(first, 5, 0.0)
        state.applied(first)

    again = recovered(state)
    rejoin(again, 0)
    known, missing, new = call(0, 4), call(0, 3), call(0, 5)

    assert again.global_step == 15
    assert again.push(known, 5, 0.0) == [SendReply(known, repeated=True)]
    assert again.push(missing, 5, 0.0) == [Apply(missing, 15)]
    assert again.push(new, 5, 0.0) == [Apply(new, 20)]


def test_a_round_in_the_cut_is_answered_and_the_next_one_is_open() -> None:
    state = state_of(Sync())
    pushes = [call(0, 1), call(1, 1)]
    state.exchange(pushes[0], 0.0)
    state.exchange(pushes[1], 0.0)
    state.closed()

    again = recovered(state)
    for trainer in (0, 1):
        rejoin(again, trainer)
    repeated, ahead, other = call(0, 1), call(0, 2), call(1, 2)

    assert again.open_round == 1
    assert again.exchange(repeated, 0.0) == [SendReply(repeated, repeated=True)]
    assert again.exchange(ahead, 0.0) == []
    assert again.exchange(other, 0.0) == [Close(1, (ahead, other))]


def test_reads_wait_until_every_trainer_has_sent_its_pushes_again() -> None:
    again = recovered(state_of(Async()))
    rejoin(again, 0)
    again.resent(0, 100, 0.0, 3)

    with pytest.raises(PsrtError, match="waits for trainer 1 to send") as refused:
        again.pull(0, 100, 0.0, acknowledges=False)
    assert refused.value.code is ErrorCode.RECOVERING
    assert describe(again, 0.0)["recovers_from"] == [1]

    rejoin(again, 1)
    again.resent(1, 101, 0.0, 3)
    again.pull(0, 100, 0.0, acknowledges=False)


def test_in_sync_a_trainer_reads_once_its_own_pushes_are_here_again() -> None:
    """Another one repeats a push to the next round, which waits for this trainer's."""
    again = recovered(state_of(Sync()))
    for trainer in (0, 1):
        rejoin(again, trainer)
    ahead = call(1, 1)
    again.exchange(ahead, 0.0)
    with pytest.raises(PsrtError, match="waits for trainer 0, trainer 1 to send"):
        again.pull(0, 100, 0.0, acknowledges=False)
    again.resent(0, 100, 0.0, 3)

    again.pull(0, 100, 0.0, acknowledges=False)
    other = call(0, 1)

    assert again.exchange(other, 0.0) == [Close(0, (other, ahead))]
    with pytest.raises(PsrtError, match="waits for trainer 1 to send"):
        again.pull(1, 101, 0.0, acknowledges=False)


def test_in_sync_no_cut_is_announced_behind_a_round_that_the_killed_process_may_have_answered() -> (
    None
):
    """Trainer 1 has the reply to round 0, and is in round 1; trainer 0 was not answered."""
    again = recovered(state_of(Sync()))
    again.cuts = Cuts(again.members, WAIT_S, lambda: 4)
    for trainer in (0, 1):
        rejoin(again, trainer)
    close_round(again, sequence=1)
    again.resent(0, 100, 0.0, 3)
    assert again.cuts.behind(0) == 0

    close_round(again, sequence=2)
    again.resent(1, 101, 0.0, 3)
    assert again.cuts.behind(1) == 0

    close_round(again, sequence=3)
    assert (again.cuts.behind(1), again.cuts.behind(2)) == (0, 4)


def close_round(state: PserverState, sequence: int) -> None:
    state.exchange(call(1, sequence), 0.0)
    (close,) = state.exchange(call(0, sequence), 0.0)
    assert isinstance(close, Close)
    state.closed(round=close.round)


def test_a_pserver_that_missed_a_cut_ends_the_job_for_all() -> None:
    """It was killed behind its part of cut 4, and read cut 3 before the others completed 4."""
    again = recovered(state_of(Async()))
    for trainer in (0, 1):
        rejoin(again, trainer)
    again.resent(0, 100, 0.0, 3)

    again.resent(1, 101, 0.0, 4)

    with pytest.raises(JobError, match="went on from cut 3, but cut 4 became complete"):
        again.pull(0, 100, 0.0, acknowledges=False)


@pytest.mark.parametrize("frozen_again", [False, True])
def test_a_local_cut_has_the_pushes_of_every_cut_frozen_before(frozen_again: bool) -> None:
    """The pserver wrote its part of cut 4, or of 4 and 5, then a local cut, and was killed."""
    state = state_of(Async())
    for number in (4, 5) if frozen_again else (4,):
        for trainer in (0, 1):
            state.cut(call(trainer, 0), number, 0.0)
        state.cuts.frozen()
    again = PserverState(WAIT_S, is_gone=lambda trainer, incarnation: None)
    facts = local_facts(state, process=1, incarnation=7, specs=())
    restore(again, json.loads(json.dumps(facts["state"])), 0.0)
    for trainer in (0, 1):
        rejoin(again, trainer)

    again.resent(0, 100, 0.0, 4)
    again.resent(1, 101, 0.0, 5)

    if frozen_again:
        again.pull(0, 100, 0.0, acknowledges=False)
    else:
        with pytest.raises(JobError, match="went on from cut 4, but cut 5 became complete"):
            again.pull(0, 100, 0.0, acknowledges=False)


def test_in_sync_a_trainer_that_joins_now_reads_at_once() -> None:
    """The push that another one repeats waits in its round for this trainer's."""
    state = PserverState(WAIT_S)
    job = JobIdentity("job", "plan", 2, Sync())
    state.hello(0, 100, job, 0.0)
    state.attend(0, 100, 0.0)
    again = recovered(state)
    rejoin(again, 0)
    repeated, first = call(0, 1), call(1, 1)
    assert again.exchange(repeated, 0.0) == []

    rejoin(again, 1)
    again.pull(1, 101, 0.0, acknowledges=False)

    assert again.exchange(first, 0.0) == [Close(0, (repeated, first))]


def test_a_trainer_that_had_completed_is_not_awaited() -> None:
    state = state_of(Async())
    state.complete(1, 101, 0.0)

    again = recovered(state)
    rejoin(again, 0)
    again.resent(0, 100, 0.0, 3)

    again.pull(0, 100, 0.0, acknowledges=False)


def test_one_that_was_lost_elsewhere_is_not_awaited_by_a_pserver_that_takes_over() -> None:
    saved = json.loads(json.dumps(dump(state_of(Async(), trainers=3), cut=3)))
    elsewhere = [Member(0), Member(1, MemberState.LOST, 101), Member(2, MemberState.RUNNING, 102)]
    again = PserverState(WAIT_S)

    take_over(again, saved, elsewhere, 0.0)

    assert again.recovery.missing == [0, 2]
    assert again.members.awaited() == [0, 2]
    assert trainers_using(saved, elsewhere) == {0, 2}
    with pytest.raises(JobError, match=r"trainer 1 was replaced before .* are lost"):
        again.attend(1, 201, 0.0)


def test_a_new_process_is_refused_whose_predecessor_cannot_send_its_pushes_again() -> None:
    again = recovered(state_of(Async()))
    assert again.job is not None
    again.hello(1, 777, again.job, 0.0)

    with pytest.raises(JobError, match=r"trainer 1 was replaced before .* are lost"):
        again.attend(1, 777, 0.0)


def test_a_new_process_is_accepted_once_its_predecessor_has_sent_its_pushes() -> None:
    again = recovered(state_of(Async()))
    for trainer in (0, 1):
        rejoin(again, trainer)
        again.resent(trainer, 100 + trainer, 0.0, 3)
    assert again.job is not None
    again.hello(1, 777, again.job, 0.0)

    again.attend(1, 777, 0.0)

    assert again.members.member(1).incarnation == 777


def test_a_trainer_that_joined_after_the_cut_is_known_by_its_successor() -> None:
    """Another pserver has met the process before; this one, killed meanwhile, never has."""
    state = state_of(Async(), trainers=1)
    again = recovered(state)
    assert again.job is not None
    again.hello(0, 100, again.job, 0.0)
    again.attend(0, 100, 0.0)

    with pytest.raises(JobError, match="are lost"):
        again.register(0, 100, {}, 0.0, predecessor=555)
    again.register(0, 100, {}, 0.0, predecessor=100)


@pytest.mark.parametrize("end", ["completed", "lost"])
def test_a_process_that_has_ended_is_named_to_its_successor(end: str) -> None:
    """It may have pushed to another pserver, which was killed before it met the process."""
    state = state_of(Async(on_trainer_loss="shrink"))
    if end == "completed":
        state.complete(1, 101, 0.0)
    else:
        state.members.lose([1])

    assert state.members.held_by(1, 777) == 101
    assert state.members.held_by(1, 101) == 0
    assert state_of(Async()).members.held_by(0, 100) == 0


def test_every_later_process_is_refused_once_one_was() -> None:
    again = recovered(state_of(Async(), trainers=2))
    job = again.job
    assert job is not None
    again.members.member(1).state = MemberState.UNSEEN  # it joined after the cut
    again.recovery.completed(1)
    again.hello(1, 777, job, 0.0)
    again.attend(1, 777, 0.0)
    with pytest.raises(JobError, match="are lost"):
        again.register(1, 777, {}, 0.0, predecessor=555)
    again.hello(1, 888, job, 0.0)

    with pytest.raises(JobError, match="are lost"):
        again.attend(1, 888, 0.0)


def test_a_trainer_that_has_not_pushed_yet_is_not_awaited() -> None:
    """The reply to its HELLO came late: it has met this process first, and sends no RESENT."""
    again = recovered(state_of(Async()))
    rejoin(again, 0)
    again.resent(0, 100, 0.0, 3)
    rejoin(again, 1)
    again.register(1, 101, {}, 0.0, begins=True)

    again.pull(0, 100, 0.0, acknowledges=False)


def test_a_trainer_that_does_not_come_back_is_given_up_by_the_policy_of_the_job() -> None:
    again = recovered(state_of(Async(on_trainer_loss="shrink")), now=50.0)
    rejoin(again, 0, now=50.0)
    again.resent(0, 100, 50.0, 3)
    while again.recovery.missing and (due_s := again.next_deadline()) is not None:
        assert due_s <= 50.0 + 2 * WAIT_S, "trainer 1 is awaited for ever"
        again.expire(due_s)

    again.pull(0, 100, 60.0, acknowledges=False)


def test_a_repeated_cut_call_is_answered_by_the_recovered_pserver() -> None:
    again = recovered(state_of(Async()))
    rejoin(again, 0)
    asked = call(0, 0)

    assert again.cut(asked, 3, 0.0) == [SendReply(asked, repeated=True)]


def test_a_successor_is_refused_of_a_trainer_that_was_given_up_before_it_had_sent_its_pushes() -> (
    None
):
    again = recovered(state_of(Async(on_trainer_loss="shrink")), now=50.0)
    rejoin(again, 0, now=50.0)
    again.resent(0, 100, 50.0, 3)
    while again.recovery.missing and (due_s := again.next_deadline()) is not None:
        again.expire(due_s)
    assert again.job is not None
    again.hello(1, 777, again.job, 80.0)

    with pytest.raises(JobError, match=r"trainer 1 was replaced before .* are lost"):
        again.attend(1, 777, 80.0)


def expire_until(state: PserverState, until_s: float) -> None:
    while (due_s := state.next_deadline()) is not None and due_s <= until_s:
        state.expire(due_s)


@pytest.mark.parametrize("mode", [Async(on_trainer_loss="wait"), Sync(on_trainer_loss="wait")])
@pytest.mark.parametrize("successor", [False, True])
def test_the_job_ends_by_name_if_pushes_of_a_trainer_that_is_gone_are_lost(
    mode: CommunicationMode, successor: bool
) -> None:
    """Its place cannot be kept: no process may take it, and the others would wait for ever."""
    again = recovered(state_of(mode), now=50.0)
    rejoin(again, 0, now=50.0)
    again.resent(0, 100, 50.0, 3)
    if successor:
        assert again.job is not None
        again.hello(1, 777, again.job, 55.0)
        with pytest.raises(JobError, match="are lost"):
            again.attend(1, 777, 55.0)

    expire_until(again, 50.0 + 2 * WAIT_S)

    assert again.aborted is not None
    assert again.aborted.code is ErrorCode.TRAINER_LOST
    assert "trainer 1 (gone, last call 10.0 s ago)" in again.aborted.message
    assert "they are lost" in again.aborted.message
    assert "--resume latest" in again.aborted.hint
    with pytest.raises(JobError, match="trainer 1"):
        again.pull(0, 100, 71.0, acknowledges=False)


def test_the_job_ends_by_name_once_a_successor_was_refused_whose_predecessor_never_came() -> None:
    """The pserver goes on from before that process joined, so it cannot know what it pushed."""
    saved = json.loads(json.dumps(dump(state_of(Async(on_trainer_loss="wait")), cut=3)))
    again = PserverState(WAIT_S, is_gone=lambda trainer, incarnation: incarnation == 777)
    restore(again, saved, 0.0)
    job = again.job
    assert job is not None
    again.members.member(1).state = MemberState.UNSEEN  # it joined after the cut
    again.recovery.completed(1)
    rejoin(again, 0)
    again.resent(0, 100, 0.0, 3)
    again.hello(1, 777, job, 0.0)
    again.attend(1, 777, 0.0)
    with pytest.raises(JobError, match="are lost"):
        again.register(1, 777, {}, 0.0, predecessor=555)

    expire_until(again, 3 * WAIT_S)

    assert again.aborted is not None
    assert "trainer 1" in again.aborted.message


@pytest.mark.parametrize("policy", ["wait", "shrink"])
@pytest.mark.parametrize("is_held", [True, False])
def test_the_job_ends_by_name_if_a_trainer_that_is_gone_holds_a_failover_back(
    policy: str, is_held: bool
) -> None:
    """With `shrink` the others go on without it."""
    state = PserverState(WAIT_S, is_gone=lambda trainer, incarnation: trainer == 1)
    for trainer in (0, 1):
        job = JobIdentity("job", "plan", 2, Async(on_trainer_loss=policy))
        state.hello(trainer, 100 + trainer, job, 0.0)
        state.attend(trainer, 100 + trainer, 0.0)
    state.failover_waits(2, [1])
    if not is_held:
        state.failover_waits(2, [])

    expire_until(state, 3 * WAIT_S)

    if policy == "wait" and is_held:
        with pytest.raises(JobError, match=r"trainer 1 \(gone.*to serve part 2") as ended:
            state.failover_waits(2, [1])
        assert ended.value.code is ErrorCode.TRAINER_LOST
        assert "--resume latest" in ended.value.hint
    else:
        assert state.aborted is None


def test_the_place_of_a_trainer_is_kept_that_has_sent_its_pushes_again() -> None:
    gone = set[int]()
    again = PserverState(WAIT_S, is_gone=lambda trainer, incarnation: trainer in gone)
    restore(again, json.loads(json.dumps(dump(state_of(Async(on_trainer_loss="wait")), 3))), 0.0)
    for trainer in (0, 1):
        rejoin(again, trainer)
        again.resent(trainer, 100 + trainer, 0.0, 3)
    gone.add(1)

    expire_until(again, 3 * WAIT_S)

    assert again.aborted is None
    assert again.job is not None
    again.hello(1, 777, again.job, 40.0)
    again.attend(1, 777, 40.0)
    assert again.members.member(1).incarnation == 777


def at_the_beginning(mode: CommunicationMode) -> PserverState:
    """A pserver that was killed before anything was durable; trainers 100 and 101 had joined it."""
    again, saved = PserverState(WAIT_S, is_gone=lambda trainer, incarnation: None), state_of(mode)
    restore(again, {**json.loads(json.dumps(dump(saved, cut=0))), "is_beginning": True}, 0.0)
    return again


def join_anew(state: PserverState, incarnation: int, begins_anew: bool) -> None:
    """Let a new process join as trainer 0, which has found process 100 in its place."""
    job = state.job
    assert job is not None
    state.hello(0, incarnation, job, 0.0)
    assert state.attend(0, incarnation, 0.0) == []
    assert state.attend(0, incarnation, 0.0) == []  # REGISTER does so again
    state.register(0, incarnation, {"a:1": 7}, 0.0, 100, begins=True, begins_anew=begins_anew)


@pytest.mark.parametrize("mode", [Async(), Sync(on_trainer_loss="abort")])
def test_after_the_end_of_a_whole_job_at_its_beginning_new_trainers_begin_it_anew(
    mode: CommunicationMode,
) -> None:
    state = at_the_beginning(mode)
    assert state.may_begin_anew(0, 200)

    join_anew(state, 200, begins_anew=True)

    assert state.recovery.missing == [1]
    assert state.aborted is None
    assert not state.may_begin_anew(0, 200)


def test_a_new_trainer_is_refused_at_the_beginning_if_another_pserver_has_pushes() -> None:
    state = at_the_beginning(Async())

    with pytest.raises(JobError, match="they are lost"):
        join_anew(state, 200, begins_anew=False)

    assert not state.may_begin_anew(0, 201)
    job = state.job
    assert job is not None
    state.hello(0, 201, job, 0.0)
    with pytest.raises(JobError, match="they are lost"):
        state.attend(0, 201, 0.0)


def test_a_new_trainer_is_refused_while_its_predecessor_sends_pushes_again() -> None:
    state = at_the_beginning(Async())
    rejoin(state, 0)

    assert not state.may_begin_anew(0, 200)
    job = state.job
    assert job is not None
    state.hello(0, 200, job, 0.0)
    with pytest.raises(JobError, match="they are lost"):
        state.attend(0, 200, 0.0)
