"""HELLO of right and wrong processes, and exactly-once admission of asynchronous pushes."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest

from psrt.core.errors import ConfigError, ErrorCode, InternalError, JobError, WireError
from psrt.core.specs import Async, CommunicationMode, Geo, HalfAsync, Ssp, Sync
from psrt.pserver.decisions.calls import Apply, Fail, SendReply, WaitingCall
from psrt.pserver.decisions.dedupe import MOST_BEYOND, AdmittedPushes, SeenSequences
from psrt.pserver.decisions.job_identity import JobIdentity
from psrt.pserver.decisions.membership import MOST_INTRODUCED
from psrt.pserver.decisions.pserver_state import PserverState
from psrt.pserver.decisions.pushes import MOST_STEPS

ASYNC = JobIdentity("ctr", "abc", 2, Async())
SYNC = JobIdentity("ctr", "abc", 2, Sync())


def push_of(trainer: int, incarnation: int, sequence: int) -> WaitingCall:
    return WaitingCall(trainer, incarnation, sequence, math.inf)


def joined(job: JobIdentity) -> PserverState:
    state = PserverState(wait_timeout_s=10.0)
    state.hello(0, 7, job, 0.0)
    state.hello(1, 8, job, 0.0)
    return state


@pytest.mark.parametrize(
    ("theirs", "words"),
    [
        (
            JobIdentity("dnn", "abc", 2, Sync()),
            "job id is 'dnn' at the trainer and 'ctr' at this pserver",
        ),
        (
            JobIdentity("ctr", "abd", 2, Sync()),
            "plan hash is abd at the trainer and abc at this pserver",
        ),
        (JobIdentity("ctr", "abc", 3, Sync()), "number of trainers is 3 at the trainer and 2"),
        (JobIdentity("ctr", "abc", 2, Async()), '"kind":"Async"'),
    ],
)
def test_a_hello_of_another_job_names_both_sides(theirs: JobIdentity, words: str) -> None:
    state = joined(SYNC)

    with pytest.raises(WireError) as refused:
        state.hello(1, 9, theirs, 0.0)

    assert refused.value.code is ErrorCode.JOB_MISMATCH
    assert words in refused.value.message


def test_a_trainer_with_another_durability_is_refused_even_where_their_number_may_change() -> None:
    state = PserverState(wait_timeout_s=10.0)
    state.resizing.allow()
    state.hello(0, 7, replace(ASYNC, durability="delta"), 0.0)

    for theirs in (ASYNC, replace(ASYNC, trainers=3)):
        with pytest.raises(WireError) as refused:
            state.hello(1, 8, replace(theirs, durability=""), 0.0)
        words = "durability is none at the trainer and delta at this pserver"
        assert words in refused.value.message

    state.hello(1, 9, replace(ASYNC, durability="delta"), 0.0)


def test_a_job_without_a_known_durability_gets_that_of_its_first_trainer() -> None:
    state = PserverState(wait_timeout_s=10.0)
    state.expect(ASYNC)
    state.hello(0, 7, replace(ASYNC, durability="cut"), 0.0)

    with pytest.raises(WireError, match="durability is replica at the trainer and cut at"):
        state.hello(1, 8, replace(ASYNC, durability="replica"), 0.0)


def test_a_trainer_that_found_another_process_at_an_endpoint_is_refused() -> None:
    state = joined(ASYNC)
    state.register(0, 7, {"a:1": 100, "b:1": 200}, 0.0)
    state.register(0, 7, {"a:1": 100, "b:1": 200}, 1.0)

    with pytest.raises(JobError, match="found another process at b:1 than this job began with"):
        state.register(1, 8, {"a:1": 100, "b:1": 201}, 2.0)

    assert state.register(1, 8, {"a:1": 100, "b:1": 200}, 3.0) == ASYNC


def test_a_trainer_of_an_earlier_release_does_not_report_pservers() -> None:
    state = joined(ASYNC)

    state.register(0, 7, {}, 0.0)
    state.register(1, 8, {"a:1": 100}, 0.0)

    with pytest.raises(JobError, match="a:1"):
        state.register(1, 8, {"a:1": 101}, 0.0)


def test_every_connection_of_a_process_may_say_hello() -> None:
    state = joined(SYNC)

    state.hello(1, 8, SYNC, 1.0)

    assert state.members.member(1).incarnation == 8


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        (Sync(on_trainer_loss="pray"), "on_trainer_loss = 'pray', not one of wait, shrink, abort"),
        (Async(merge="max"), "merge = 'max', not one of sum, average"),
        (Async(dc_asgd=-0.1), "dc_asgd = -0.1, not a finite number from 0 on"),
        (Async(dc_asgd=float("nan")), "dc_asgd = nan"),
        (Async(send_queue_size=0), "send_queue_size = 0, not a whole number from 1 on"),
        (Async(thread_pool_size=True), "thread_pool_size = True"),
        (Async(independent_recv_thread=1), "independent_recv_thread = 1, not true or false"),  # type: ignore[arg-type]
        (Ssp(max_steps_ahead=-1), "max_steps_ahead = -1, not a whole number from 0 on"),
        (Geo(update_frequency=0), "update_frequency = 0, not a whole number from 1 on"),
        (Geo(update_frequency=10**400), "update_frequency = 1000"),
        (Geo(update_frequency=2.5), "update_frequency = 2.5"),  # type: ignore[arg-type]
        (Geo(update_frequency="often"), "update_frequency = 'often'"),  # type: ignore[arg-type]
    ],
)
def test_a_mode_with_a_setting_that_means_nothing_is_refused_and_binds_no_job(
    mode: CommunicationMode, words: str
) -> None:
    state = PserverState(wait_timeout_s=10.0)

    with pytest.raises(ConfigError) as refused:
        state.hello(0, 7, JobIdentity("ctr", "abc", 2, mode), 0.0)

    assert f"mode {type(mode).__name__} has {words}" in refused.value.message
    assert state.job is None


@pytest.mark.parametrize("mode", [Async(), Ssp(), Ssp(0), HalfAsync(), Geo(1)])
def test_every_mode_but_sync_takes_pushes(mode: CommunicationMode) -> None:
    state = joined(JobIdentity("ctr", "abc", 2, mode))
    call = push_of(0, 7, 1)

    assert state.push(call, 3, 0.0) == [Apply(call, 0)]


def test_a_job_with_another_number_of_trainers_than_the_pserver_was_told_is_refused() -> None:
    state = PserverState(wait_timeout_s=10.0, trainers=3)

    with pytest.raises(WireError, match=r"a job of 2 trainers, .* num_gradient_servers = 3") as no:
        state.hello(0, 7, ASYNC, 0.0)

    assert no.value.code is ErrorCode.JOB_MISMATCH
    assert state.job is None
    state.hello(0, 7, JobIdentity("ctr", "abc", 3, Async()), 0.0)


def test_a_trainer_id_beyond_the_job_is_refused() -> None:
    state = joined(SYNC)

    with pytest.raises(WireError, match="trainer id 2 does not exist: the job has trainers 0 to 1"):
        state.hello(2, 9, SYNC, 0.0)


@pytest.mark.parametrize(("trainer", "incarnation"), [(2, 9), (0, 0)])
def test_a_first_hello_that_is_not_legal_binds_no_job(trainer: int, incarnation: int) -> None:
    state = PserverState(wait_timeout_s=10.0)

    with pytest.raises(WireError):
        state.hello(trainer, incarnation, SYNC, 0.0)

    assert state.job is None


def test_a_push_before_any_hello_is_refused_with_what_to_do() -> None:
    state = PserverState(wait_timeout_s=10.0)

    with pytest.raises(WireError, match="before any trainer sent HELLO") as refused:
        state.push(push_of(0, 7, 1), 1, 0.0)

    assert "HELLO" in refused.value.hint


def test_a_push_of_a_trainer_that_did_not_say_hello_is_refused() -> None:
    state = PserverState(wait_timeout_s=10.0)
    state.hello(0, 7, ASYNC, 0.0)

    with pytest.raises(WireError, match="trainer 1 has sent no HELLO"):
        state.push(push_of(1, 8, 1), 1, 0.0)


def test_a_push_in_sync_and_an_exchange_in_async_name_the_mode() -> None:
    with pytest.raises(WireError, match="PUSH needs another mode, but this job runs in mode Sync"):
        joined(SYNC).push(push_of(0, 7, 1), 1, 0.0)
    with pytest.raises(WireError, match="EXCHANGE needs mode Sync"):
        joined(ASYNC).exchange(WaitingCall(0, 7, 1, 10.0), 0.0)


def test_global_steps_add_up_over_trainers() -> None:
    state = joined(ASYNC)
    pushes = [(push_of(0, 7, 1), 4), (push_of(1, 8, 1), 2), (push_of(0, 7, 2), 1)]

    instructions = [state.push(call, steps, 0.0) for call, steps in pushes]

    calls = [call for call, _ in pushes]
    assert instructions == [[Apply(calls[0], 0)], [Apply(calls[1], 4)], [Apply(calls[2], 6)]]
    assert state.global_step == 7


def test_a_push_of_more_steps_than_anybody_makes_is_refused_before_it_is_admitted() -> None:
    state, call = joined(ASYNC), push_of(0, 7, 1)

    with pytest.raises(WireError, match=r"covers 4,294,967,297 mini-batches; it was refused"):
        state.push(call, MOST_STEPS + 1, 0.0)

    assert state.push(call, MOST_STEPS, 0.0) == [Apply(call, 0)]


def test_a_repeated_push_counts_no_step_and_is_answered_when_the_first_was_applied() -> None:
    state = joined(ASYNC)
    first, again, late = push_of(0, 7, 1), push_of(0, 7, 1), push_of(0, 7, 1)
    state.push(first, 3, 0.0)

    while_under_way = state.push(again, 3, 0.0)
    when_applied = state.applied(first)
    afterwards = state.push(late, 3, 0.0)

    assert while_under_way == []
    assert when_applied == [SendReply(first), SendReply(again, repeated=True)]
    assert afterwards == [SendReply(late, repeated=True)]
    assert state.global_step == 3


def test_a_push_that_could_not_be_applied_fails_with_all_its_repeats() -> None:
    state = joined(ASYNC)
    first, again = push_of(0, 7, 1), push_of(0, 7, 1)
    state.push(first, 1, 0.0)
    state.push(again, 1, 0.0)
    error = InternalError("no memory")

    assert state.applied(first, error) == [Fail(first, error), Fail(again, error)]


def test_a_push_after_complete_is_refused() -> None:
    state = joined(ASYNC)
    state.complete(0, 7, 0.0)

    with pytest.raises(JobError, match="called after its COMPLETE"):
        state.push(push_of(0, 7, 1), 1, 0.0)


def test_complete_may_be_repeated_and_the_job_ends_with_the_last() -> None:
    state = joined(ASYNC)
    state.complete(0, 7, 0.0)
    state.complete(0, 7, 0.0)
    before = state.members.ended()
    state.complete(1, 8, 0.0)

    assert not before
    assert state.members.ended()


@pytest.mark.parametrize("order", list(itertools.permutations([1, 2, 3, 4])))
def test_sequences_in_any_order_are_new_once_and_leave_no_trace(order: tuple[int, ...]) -> None:
    seen = SeenSequences()

    first = [seen.add(sequence) for sequence in order]
    again = [seen.add(sequence) for sequence in order]

    assert all(first)
    assert not any(again)
    assert (seen.complete_to, seen.beyond) == (4, set())


@pytest.mark.parametrize("position", range(4))
@pytest.mark.parametrize("mode", [Async(), Sync("shrink")], ids=["async", "sync"])
def test_the_hello_of_a_dead_process_that_arrives_late_takes_no_place(
    mode: CommunicationMode, position: int
) -> None:
    state, job = PserverState(wait_timeout_s=10.0), JobIdentity("ctr", "abc", 2, mode)
    script = ["hello", "attend", "register"]
    script.insert(position, "late hello")

    for step in script:
        if step.endswith("hello"):
            state.hello(0, 7 if step == "late hello" else 8, job, 0.0)
        else:
            state.attend(0, 8, 0.0)

    assert state.aborted is None
    assert state.members.member(0).incarnation == 8
    state.called(0, 8, 0.0)


def test_a_new_process_takes_the_place_by_its_first_call_and_the_former_is_refused_for_good() -> (
    None
):
    state = joined(ASYNC)
    state.called(0, 7, 0.0)
    state.hello(0, 70, ASYNC, 1.0)
    state.called(0, 7, 1.0)
    with pytest.raises(JobError, match="another process has joined as trainer 0"):
        state.push(push_of(0, 70, 1), 1, 1.0)  # neither ATTEND nor REGISTER

    state.attend(0, 70, 2.0)

    assert state.push(push_of(0, 70, 1), 1, 2.0)
    for refused in (state.called, state.attend):
        with pytest.raises(JobError, match="another process has joined as trainer 0"):
            refused(0, 7, 3.0)
    with pytest.raises(JobError, match="another process has joined as trainer 0"):
        state.hello(0, 7, ASYNC, 3.0)


def test_the_memory_for_processes_that_were_introduced_is_bounded() -> None:
    state = joined(ASYNC)
    for incarnation in range(1000, 1000 + 2 * MOST_INTRODUCED):
        state.hello(0, incarnation, ASYNC, 0.0)

    assert len(state.members.member(0).introduced) == MOST_INTRODUCED
    state.attend(0, 1000 + 2 * MOST_INTRODUCED - 1, 0.0)
    assert len(state.members.member(0).introduced) == MOST_INTRODUCED - 1


def test_a_new_incarnation_starts_its_sequences_over() -> None:
    pushes = AdmittedPushes()
    pushes.admit(0, 7, 1)

    assert not pushes.admit(0, 7, 1)
    assert pushes.admit(0, 8, 1)
    assert pushes.admit(1, 7, 1)


def test_a_gap_that_no_caller_can_still_fill_is_given_up() -> None:
    seen = SeenSequences()

    for sequence in range(2, MOST_BEYOND + 3):  # 1 was refused, and never comes
        assert seen.add(sequence)

    assert (seen.complete_to, seen.beyond) == (MOST_BEYOND + 2, set())
    assert not seen.add(1)
