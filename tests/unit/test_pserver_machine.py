"""Who may join a job, and exactly-once admission of asynchronous pushes."""

from __future__ import annotations

import itertools

import pytest

from psrt.core.errors import ConfigError, ErrorCode, JobError, WireError
from psrt.core.specs import Async, Geo, Sync
from psrt.pserver.dedupe import AdmittedPushes, SeenSequences
from psrt.pserver.machine import Job, Machine
from psrt.pserver.rounds import Call

ASYNC = Job("ctr", "abc", 2, Async())
SYNC = Job("ctr", "abc", 2, Sync())


def joined(job: Job) -> Machine:
    machine = Machine(wait_timeout_s=10.0)
    machine.hello(0, 7, job, 0.0)
    machine.hello(1, 8, job, 0.0)
    return machine


@pytest.mark.parametrize(
    ("theirs", "words"),
    [
        (Job("dnn", "abc", 2, Sync()), "job id is 'dnn' at the trainer and 'ctr' at this pserver"),
        (Job("ctr", "abd", 2, Sync()), "plan hash is abd at the trainer and abc at this pserver"),
        (Job("ctr", "abc", 3, Sync()), "number of trainers is 3 at the trainer and 2"),
        (Job("ctr", "abc", 2, Async()), '"kind":"Async"'),
    ],
)
def test_a_hello_of_another_job_names_both_sides(theirs: Job, words: str) -> None:
    machine = joined(SYNC)

    with pytest.raises(WireError) as refused:
        machine.hello(1, 9, theirs, 0.0)

    assert refused.value.code is ErrorCode.JOB_MISMATCH
    assert words in refused.value.message


def test_every_connection_of_a_process_may_say_hello() -> None:
    machine = joined(SYNC)

    assert machine.hello(1, 8, SYNC, 1.0) == []


@pytest.mark.parametrize("mode", [Geo(), Sync(on_trainer_loss="pray")])
def test_a_mode_this_pserver_cannot_serve_is_refused_and_binds_no_job(mode: Geo | Sync) -> None:
    machine = Machine(wait_timeout_s=10.0)

    with pytest.raises(ConfigError):
        machine.hello(0, 7, Job("ctr", "abc", 2, mode), 0.0)

    assert machine.job is None


def test_a_trainer_id_beyond_the_job_is_refused() -> None:
    machine = joined(SYNC)

    with pytest.raises(WireError, match="trainer id 2 does not exist: the job has trainers 0 to 1"):
        machine.hello(2, 9, SYNC, 0.0)


@pytest.mark.parametrize(("trainer", "incarnation"), [(2, 9), (0, 0)])
def test_a_first_hello_that_is_not_legal_binds_no_job(trainer: int, incarnation: int) -> None:
    machine = Machine(wait_timeout_s=10.0)

    with pytest.raises(WireError):
        machine.hello(trainer, incarnation, SYNC, 0.0)

    assert machine.job is None


def test_a_push_before_any_hello_is_refused_with_what_to_do() -> None:
    machine = Machine(wait_timeout_s=10.0)

    with pytest.raises(WireError, match="before any trainer said HELLO") as refused:
        machine.push(0, 7, 1, 1, 0.0)

    assert "HELLO" in refused.value.hint


def test_a_push_of_a_trainer_that_did_not_say_hello_is_refused() -> None:
    machine = Machine(wait_timeout_s=10.0)
    machine.hello(0, 7, ASYNC, 0.0)

    with pytest.raises(WireError, match="trainer 1 has not said HELLO"):
        machine.push(1, 8, 1, 1, 0.0)


def test_a_push_in_sync_and_an_exchange_in_async_name_the_mode() -> None:
    with pytest.raises(WireError, match="PUSH needs mode Async"):
        joined(SYNC).push(0, 7, 1, 1, 0.0)
    with pytest.raises(WireError, match="EXCHANGE needs mode Sync"):
        joined(ASYNC).exchange(Call(0, 7, 1, 10.0), 0.0)


def test_global_steps_of_async_add_up_over_trainers() -> None:
    machine = joined(ASYNC)

    steps = [
        machine.push(0, 7, 1, 4, 0.0),
        machine.push(1, 8, 1, 2, 0.0),
        machine.push(0, 7, 2, 1, 0.0),
    ]

    assert steps == [0, 4, 6]
    assert machine.global_step == 7


def test_a_retried_push_of_async_is_admitted_once_and_counts_no_step() -> None:
    machine = joined(ASYNC)
    machine.push(0, 7, 1, 3, 0.0)

    assert machine.push(0, 7, 1, 3, 0.0) is None
    assert machine.global_step == 3


def test_a_push_after_complete_is_refused() -> None:
    machine = joined(ASYNC)
    machine.complete(0, 7, 0.0)

    with pytest.raises(JobError, match="pushed after it said COMPLETE"):
        machine.push(0, 7, 1, 1, 0.0)


def test_complete_may_be_repeated_and_the_job_ends_with_the_last() -> None:
    machine = joined(ASYNC)
    machine.complete(0, 7, 0.0)
    machine.complete(0, 7, 0.0)
    before = machine.members.ended()
    machine.complete(1, 8, 0.0)

    assert not before
    assert machine.members.ended()


@pytest.mark.parametrize("order", list(itertools.permutations([1, 2, 3, 4])))
def test_sequences_in_any_order_are_new_once_and_leave_no_trace(order: tuple[int, ...]) -> None:
    seen = SeenSequences()

    first = [seen.add(sequence) for sequence in order]
    again = [seen.add(sequence) for sequence in order]

    assert all(first)
    assert not any(again)
    assert (seen.complete_to, seen.beyond) == (4, set())


def test_a_new_incarnation_starts_its_sequences_over() -> None:
    pushes = AdmittedPushes()
    pushes.admit(0, 7, 1)

    assert not pushes.admit(0, 7, 1)
    assert pushes.admit(0, 8, 1)
    assert pushes.admit(1, 7, 1)
