"""Decisions of a launcher when processes end, signals arrive and time passes."""

from __future__ import annotations

import signal

from psrt.launch.plan import PSERVER, TRAINER, ChildId, Plan
from psrt.launch.scripts import ScriptPlan
from psrt.launch.supervise import (
    STANDBY_AFTER_S,
    Kill,
    Outcome,
    Phase,
    Recover,
    StandBy,
    Start,
    Supervisor,
    Terminate,
)

PSERVERS = (ChildId(PSERVER, 0), ChildId(PSERVER, 1))
TRAINERS = (ChildId(TRAINER, 0), ChildId(TRAINER, 1))
GRACE_S = 10.0


def starting() -> Supervisor:
    supervisor = Supervisor(GRACE_S)
    for child in PSERVERS:
        supervisor.started(child)
    return supervisor


def training() -> Supervisor:
    supervisor = starting()
    for child in TRAINERS:
        supervisor.started(child)
    return supervisor


def draining(now: float = 0.0) -> Supervisor:
    supervisor = training()
    for child in TRAINERS:
        supervisor.exited(child, 0, now)
    return supervisor


def test_a_pserver_that_ends_while_starting_fails_the_job_even_with_code_0() -> None:
    supervisor = starting()

    instructions = supervisor.exited(PSERVERS[1], 0, now=1.0)

    assert instructions == [Terminate((PSERVERS[0],))]
    assert supervisor.outcome == Outcome(culprit=PSERVERS[1], code=0)


def test_a_trainer_that_ends_well_changes_nothing_while_another_runs() -> None:
    supervisor = training()

    instructions = supervisor.exited(TRAINERS[0], 0, now=1.0)

    assert instructions == []
    assert supervisor.phase is Phase.TRAINING


def test_a_pserver_may_end_well_before_the_last_trainer_does() -> None:
    supervisor = training()

    instructions = supervisor.exited(PSERVERS[0], 0, now=1.0)

    assert instructions == []
    assert supervisor.outcome == Outcome()


def test_trainers_that_run_on_without_a_pserver_fail_the_job_of_that_pserver() -> None:
    supervisor = training()
    supervisor.exited(PSERVERS[0], 0, now=1.0)
    supervisor.exited(PSERVERS[1], 0, now=5.0)

    instructions = [supervisor.tick(0.9 + Plan.outlived_s), supervisor.tick(1.0 + Plan.outlived_s)]

    assert instructions == [[], [Terminate(TRAINERS)]]
    assert supervisor.outcome == Outcome(culprit=PSERVERS[0], code=0)


def test_the_job_succeeds_when_trainers_and_then_pservers_end_by_themselves() -> None:
    supervisor = draining()

    instructions = [
        *supervisor.exited(PSERVERS[0], 0, 1.0),
        *supervisor.exited(PSERVERS[1], 0, 1.0),
    ]

    assert instructions == []
    assert supervisor.phase is Phase.ENDED
    assert supervisor.outcome == Outcome()


def test_pservers_that_do_not_end_by_themselves_are_asked_after_the_grace() -> None:
    supervisor = draining(now=100.0)

    before = supervisor.tick(100.0 + GRACE_S - 0.1)
    after = supervisor.tick(100.0 + GRACE_S)

    assert before == []
    assert after == [Terminate(PSERVERS)]


def test_a_pserver_that_was_asked_to_end_does_not_spoil_the_success() -> None:
    supervisor = draining(now=0.0)
    supervisor.tick(GRACE_S)

    supervisor.exited(PSERVERS[0], -signal.SIGTERM, GRACE_S + 1)
    supervisor.exited(PSERVERS[1], 0, GRACE_S + 1)

    assert supervisor.phase is Phase.ENDED
    assert supervisor.outcome == Outcome()


def test_a_pserver_that_crashes_after_training_fails_the_job() -> None:
    supervisor = draining()

    supervisor.exited(PSERVERS[0], 99, now=1.0)

    assert supervisor.outcome == Outcome(culprit=PSERVERS[0], code=99)


def test_the_first_failure_stops_all_others_and_stays_the_culprit() -> None:
    supervisor = training()

    first = supervisor.exited(PSERVERS[0], -signal.SIGKILL, now=1.0)
    second = supervisor.exited(TRAINERS[1], 50, now=1.1)

    assert first == [Terminate((PSERVERS[1], *TRAINERS))]
    assert second == []
    assert supervisor.outcome == Outcome(culprit=PSERVERS[0], code=-signal.SIGKILL)


def test_who_does_not_end_within_the_grace_is_killed_once() -> None:
    supervisor = training()
    supervisor.exited(TRAINERS[0], 1, now=0.0)
    supervisor.exited(PSERVERS[0], 0, now=1.0)

    instructions = [supervisor.tick(GRACE_S - 0.1), supervisor.tick(GRACE_S), supervisor.tick(99.0)]

    assert instructions == [[], [Kill((PSERVERS[1], TRAINERS[1]))], []]


def test_a_failed_job_ends_when_the_last_process_does() -> None:
    supervisor = starting()
    supervisor.exited(PSERVERS[0], 71, now=0.0)

    supervisor.exited(PSERVERS[1], -signal.SIGTERM, now=0.5)

    assert supervisor.phase is Phase.ENDED


def test_the_failure_of_the_only_process_ends_the_job_at_once() -> None:
    supervisor = Supervisor(GRACE_S)
    supervisor.started(PSERVERS[0])

    instructions = supervisor.exited(PSERVERS[0], 71, now=0.0)

    assert instructions == []
    assert supervisor.phase is Phase.ENDED


def test_an_interrupt_asks_everybody_to_end_and_a_second_one_kills() -> None:
    supervisor = training()

    first = supervisor.interrupted(signal.SIGINT, now=0.0)
    second = supervisor.interrupted(signal.SIGINT, now=0.1)

    assert first == [Terminate((*PSERVERS, *TRAINERS))]
    assert second == [Kill((*PSERVERS, *TRAINERS))]
    assert supervisor.outcome == Outcome(signal=signal.SIGINT)


def test_an_interrupt_after_a_failure_does_not_hide_the_failure() -> None:
    supervisor = training()
    supervisor.exited(TRAINERS[0], 20, now=0.0)

    supervisor.interrupted(signal.SIGINT, now=0.1)

    assert supervisor.outcome == Outcome(culprit=TRAINERS[0], code=20)


def test_giving_up_stops_everybody_without_naming_a_culprit() -> None:
    supervisor = starting()

    instructions = supervisor.give_up(now=0.0)

    assert instructions == [Terminate(PSERVERS)]
    assert supervisor.outcome == Outcome()


def test_a_pserver_that_was_killed_is_started_again_as_often_as_allowed() -> None:
    supervisor = Supervisor(GRACE_S, recoveries=1)
    for child in (*PSERVERS, *TRAINERS):
        supervisor.started(child)

    assert supervisor.exited(PSERVERS[0], -signal.SIGKILL, now=1.0) == [Recover(PSERVERS[0])]
    supervisor.started(PSERVERS[0])
    assert supervisor.phase is Phase.TRAINING
    assert supervisor.outcome == Outcome()

    supervisor.exited(PSERVERS[1], -signal.SIGKILL, now=2.0)
    assert supervisor.outcome == Outcome(culprit=PSERVERS[1], code=-signal.SIGKILL)


def test_a_pserver_that_ends_with_an_error_is_not_started_again() -> None:
    supervisor = Supervisor(GRACE_S, recoveries=1)
    for child in (*PSERVERS, *TRAINERS):
        supervisor.started(child)

    supervisor.exited(PSERVERS[0], 61, now=1.0)

    assert supervisor.outcome == Outcome(culprit=PSERVERS[0], code=61)


def test_a_trainer_that_was_killed_is_started_again_as_often_as_allowed() -> None:
    supervisor = Supervisor(GRACE_S, restarts=1)
    for child in (*PSERVERS, *TRAINERS):
        supervisor.started(child)

    assert supervisor.exited(TRAINERS[1], -signal.SIGKILL, now=1.0) == [Recover(TRAINERS[1])]
    supervisor.started(TRAINERS[1])
    supervisor.exited(TRAINERS[0], -signal.SIGKILL, now=2.0)

    assert supervisor.outcome == Outcome(culprit=TRAINERS[0], code=-signal.SIGKILL)


def test_no_trainer_is_started_again_once_a_pserver_has_ended() -> None:
    supervisor = Supervisor(GRACE_S, restarts=1)
    for child in (*PSERVERS, *TRAINERS):
        supervisor.started(child)
    supervisor.exited(PSERVERS[0], 0, now=1.0)

    supervisor.exited(TRAINERS[1], -signal.SIGKILL, now=2.0)

    assert supervisor.outcome == Outcome(culprit=TRAINERS[1], code=-signal.SIGKILL)


CUT_S = 30.0


def of_a_job_with_cuts() -> Supervisor:
    supervisor = Supervisor(GRACE_S, CUT_S)
    for child in (*PSERVERS, *TRAINERS):
        supervisor.started(child)
    return supervisor


def test_with_cuts_a_signal_ends_trainers_first_and_then_pservers() -> None:
    supervisor = of_a_job_with_cuts()

    assert supervisor.interrupted(signal.SIGINT, now=1.0) == [Terminate(TRAINERS)]
    assert supervisor.deadline == 1.0 + GRACE_S + CUT_S
    assert supervisor.exited(TRAINERS[0], 130, now=2.0) == []
    assert supervisor.exited(TRAINERS[1], 130, now=3.0) == [Terminate(PSERVERS)]
    assert supervisor.deadline == 3.0 + GRACE_S + CUT_S
    supervisor.exited(PSERVERS[0], 0, now=4.0)
    supervisor.exited(PSERVERS[1], 0, now=4.0)

    assert supervisor.phase is Phase.ENDED
    assert supervisor.outcome == Outcome(signal=signal.SIGINT)


def test_a_pserver_that_ends_well_while_trainers_leave_ends_nothing_else() -> None:
    supervisor = of_a_job_with_cuts()
    supervisor.interrupted(signal.SIGINT, now=1.0)

    assert supervisor.exited(PSERVERS[1], 0, now=2.0) == []
    assert supervisor.exited(PSERVERS[0], 70, now=2.0) == [Terminate(TRAINERS)]
    assert supervisor.outcome == Outcome(signal=signal.SIGINT)


def test_trainers_that_do_not_leave_are_killed_by_a_second_signal_and_stopped_in_the_end() -> None:
    supervisor = of_a_job_with_cuts()
    supervisor.interrupted(signal.SIGINT, now=1.0)
    assert supervisor.tick(GRACE_S + CUT_S) == []
    assert supervisor.tick(1.0 + GRACE_S + CUT_S) == [Terminate((*PSERVERS, *TRAINERS))]

    assert supervisor.interrupted(signal.SIGINT, now=42.0) == [Kill((*PSERVERS, *TRAINERS))]


def test_a_job_that_failed_waits_for_no_cut() -> None:
    of_a_pserver, of_a_trainer, leaving = (of_a_job_with_cuts() for _ in range(3))
    leaving.interrupted(signal.SIGINT, now=0.0)

    of_a_pserver.exited(PSERVERS[1], -signal.SIGKILL, now=1.0)
    of_a_trainer.exited(TRAINERS[1], 1, now=1.0)
    leaving.exited(PSERVERS[1], -signal.SIGKILL, now=1.0)

    supervisors = (of_a_pserver, of_a_trainer, leaving)
    assert [each.deadline for each in supervisors] == [1.0 + GRACE_S] * 3


def test_a_signal_before_trainers_run_stops_all_at_once_with_cuts_too() -> None:
    supervisor = Supervisor(GRACE_S, CUT_S)
    supervisor.started(PSERVERS[0])

    assert supervisor.interrupted(signal.SIGTERM, now=0.0) == [Terminate(PSERVERS[:1])]


# --- a process that stands by --------------------------------------------------------------------


def with_standby(recoveries: int) -> Supervisor:
    """A supervisor whose first `tick` in training was at 0.0."""
    supervisor = Supervisor(GRACE_S, recoveries=recoveries, stands_by=True)
    for child in PSERVERS:
        supervisor.started(child)
    assert supervisor.tick(-50.0) == []
    for child in TRAINERS:
        supervisor.started(child)
    assert supervisor.tick(0.0) == []
    return supervisor


def test_one_process_stands_by_some_seconds_after_training_began() -> None:
    supervisor = with_standby(recoveries=2)

    assert supervisor.tick(STANDBY_AFTER_S - 0.1) == []
    assert supervisor.tick(STANDBY_AFTER_S) == [StandBy()]
    assert supervisor.tick(STANDBY_AFTER_S + 100.0) == []


def test_another_process_stands_by_some_seconds_after_a_recovery() -> None:
    supervisor = with_standby(recoveries=2)
    supervisor.tick(STANDBY_AFTER_S)

    assert supervisor.exited(PSERVERS[0], -9, now=50.0) == [Recover(PSERVERS[0])]
    supervisor.started(PSERVERS[0])

    assert supervisor.tick(50.0) == []
    assert supervisor.tick(50.0 + STANDBY_AFTER_S) == [StandBy()]


def test_no_process_stands_by_that_could_not_be_used() -> None:
    supervisor = with_standby(recoveries=1)
    supervisor.exited(PSERVERS[0], -9, now=1.0)
    supervisor.started(PSERVERS[0])

    assert supervisor.tick(100.0) == []


def test_a_process_that_stood_by_and_ended_has_no_successor() -> None:
    supervisor = with_standby(recoveries=2)
    supervisor.tick(STANDBY_AFTER_S)

    supervisor.standby_ended()

    assert supervisor.tick(100.0) == []
    assert supervisor.exited(PSERVERS[0], -9, now=101.0) == [Recover(PSERVERS[0])]
    assert supervisor.tick(200.0) == []


def test_no_process_stands_by_while_the_job_ends() -> None:
    supervisor = with_standby(recoveries=2)
    supervisor.exited(TRAINERS[0], 1, now=1.0)

    assert supervisor.tick(GRACE_S - 1.0) == []


def test_a_job_with_more_trainers_starts_those_that_do_not_run() -> None:
    supervisor = training()
    third, fourth = ChildId(TRAINER, 2), ChildId(TRAINER, 3)

    assert supervisor.resized(4) == [Start((third, fourth))]
    supervisor.started(third)
    supervisor.started(fourth)
    assert supervisor.resized(4) == []


def test_a_job_with_fewer_trainers_lets_the_others_end() -> None:
    supervisor = training()

    assert supervisor.resized(1) == []
    assert supervisor.exited(TRAINERS[1], 0, now=1.0) == []
    assert supervisor.phase is Phase.TRAINING
    assert supervisor.resized(2) == [Start((TRAINERS[1],))]


def test_trainers_of_a_larger_job_are_started_though_the_others_have_ended() -> None:
    supervisor = draining()

    assert supervisor.resized(3) == [Start((*TRAINERS, ChildId(TRAINER, 2)))]
    supervisor.started(TRAINERS[0])

    assert supervisor.phase is Phase.TRAINING
    assert supervisor.tick(1e9) == []


def test_a_job_that_ends_starts_no_trainers() -> None:
    supervisor = training()
    supervisor.interrupted(signal.SIGTERM, 1.0)

    assert supervisor.resized(3) == []


def test_ranks_of_a_script_may_run_on_for_any_time_after_pservers_have_ended() -> None:
    supervisor = Supervisor(GRACE_S, outlived_s=ScriptPlan.outlived_s)
    for child in (*PSERVERS, *TRAINERS):
        supervisor.started(child)
    for child in PSERVERS:
        supervisor.exited(child, 0, now=1.0)

    assert supervisor.tick(now=1e9) == []

    for child in TRAINERS:
        supervisor.exited(child, 0, now=1e9)
    assert (supervisor.phase, supervisor.outcome) == (Phase.ENDED, Outcome())
