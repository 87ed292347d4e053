"""Cuts of a job: proposals, parts in every order, failures, deadlines, schedules, retention."""

from __future__ import annotations

import itertools
import random

import pytest

from psrt.coordinator.coordinator import CutCoordinator
from psrt.coordinator.instructions import Announce, Commit, Discard, Done
from psrt.coordinator.retention import Retention, closure
from psrt.coordinator.schedule import CutSchedule
from psrt.core.errors import ErrorCode, StorageError

ENDPOINTS = ("a:1", "b:1", "c:1")


def coordinator(**options: object) -> CutCoordinator:
    return CutCoordinator(ENDPOINTS, CutSchedule(), 30.0, **options)


@pytest.mark.parametrize("order", list(itertools.permutations(ENDPOINTS)))
def test_a_cut_is_committed_when_the_last_part_is_written(order: tuple[str, ...]) -> None:
    cuts = coordinator()
    cuts.request("cli", 0.0)

    for endpoint in order[:-1]:
        assert cuts.part(1, endpoint, f"record of {endpoint}") == []
    (commit,) = cuts.part(1, order[-1], f"record of {order[-1]}")

    assert commit == Commit(1, {e: f"record of {e}" for e in ENDPOINTS})
    assert cuts.committed(1) == [Done("cli", 1)]
    assert (cuts.complete, cuts.proposed) == (1, 0)


def test_watching_trainers_are_told_of_a_proposal_once() -> None:
    cuts = coordinator()
    assert cuts.watch("t0", 0) == []
    cuts.watch("t1", 0)

    assert cuts.request("cli", 1.0) == [Announce("t0", 1), Announce("t1", 1)]
    assert cuts.watch("t0 again", 1) == []
    assert cuts.watch("late", 0) == [Announce("late", 1)]


def test_a_trainer_that_has_gone_is_not_told() -> None:
    cuts = coordinator()
    cuts.watch("t0", 0)
    cuts.unwatch("t0")

    assert cuts.request("cli", 1.0) == []


def test_a_late_report_of_a_restart_ends_no_cut_whose_manifest_is_being_written() -> None:
    cuts = coordinator()
    cuts.request("cli", 0.0)
    for endpoint in ENDPOINTS:
        instructions = cuts.part(1, endpoint, "record")
    assert isinstance(instructions[0], Commit)

    assert cuts.no_part(1, "b:1: the pserver was started again") == []
    assert cuts.committed(1) == [Done("cli", 1)]


def test_a_cut_ends_that_a_pserver_has_no_part_of() -> None:
    cuts = coordinator()
    cuts.request("cli", 0.0)
    cuts.part(1, "a:1", "record")

    discard, done = cuts.no_part(1, "b:1: no memory")

    assert discard == Discard(1, "b:1: no memory")
    assert done.error.code is ErrorCode.CUT_GIVEN_UP


def test_a_superseded_coordinator_proposes_nothing_and_deletes_nothing() -> None:
    cuts = CutCoordinator(ENDPOINTS, CutSchedule(every_s=1.0), 30.0)
    cuts.request("cli", 0.0)
    cuts.part(1, "a:1", "record", call="a")
    error = StorageError("another process has taken over")

    assert cuts.left_open(1, error, True) == [Done("a", 1, error), Done("cli", 1, error)]
    assert cuts.request("cli again", 5.0) == [Done("cli again", 0, error)]
    assert cuts.tick(100.0) == []
    assert cuts.proposed == 0


def test_a_cut_of_unknown_outcome_is_followed_by_others() -> None:
    cuts = coordinator()
    cuts.request("cli", 0.0)

    cuts.left_open(1, StorageError("the directory does not answer"), False)

    assert cuts.request("cli again", 1.0) == []
    assert (cuts.proposed, cuts.complete) == (2, 0)


def test_repeated_late_and_foreign_reports_change_nothing() -> None:
    cuts = coordinator()
    cuts.request("cli", 0.0)

    assert cuts.part(1, "a:1", "r") == cuts.part(1, "a:1", "r") == []
    assert cuts.part(7, "b:1", "r") == cuts.part(1, "stranger:1", "r") == []
    cuts.part(1, "b:1", "r")
    (commit,) = cuts.part(1, "c:1", "r")
    assert cuts.part(1, "c:1", "r") == []
    assert set(commit.parts) == set(ENDPOINTS)


def test_a_failed_part_ends_the_cut_and_its_request() -> None:
    cuts = coordinator()
    cuts.request("cli", 0.0)

    discard, done = cuts.failed(1, "b:1: no space is left")

    assert discard == Discard(1, "b:1: no space is left")
    assert (done.call, done.error.code) == ("cli", ErrorCode.CUT_GIVEN_UP)
    assert cuts.failed(1, "again") == []
    assert cuts.part(1, "a:1", "r") == []


def test_parts_with_different_participants_are_not_put_together() -> None:
    cuts = coordinator()
    cuts.request("cli", 0.0)
    cuts.part(1, "a:1", "r", participants="trainer 0")

    discard, done = cuts.part(1, "b:1", "r", participants="trainers 0 and 1")

    assert "joined or was replaced" in discard.why
    assert done.error.code is ErrorCode.CUT_GIVEN_UP


def test_a_cut_whose_parts_do_not_arrive_is_given_up_by_name() -> None:
    cuts = coordinator()
    cuts.request("cli", 0.0)
    cuts.part(1, "a:1", "r")

    assert cuts.tick(29.9) == []
    discard, done = cuts.tick(30.0)

    assert discard.why == "b:1, c:1 did not write a part in 30 s"
    assert "Earlier cuts are complete" in done.error.message


def test_a_manifest_under_way_is_not_given_up() -> None:
    cuts = coordinator()
    cuts.request("cli", 0.0)
    for endpoint in ENDPOINTS:
        cuts.part(1, endpoint, "r")

    assert cuts.tick(100.0) == []


def test_requests_share_the_cut_under_way() -> None:
    cuts = coordinator()
    cuts.request("one", 0.0)
    cuts.request("two", 1.0)
    for endpoint in ENDPOINTS:
        cuts.part(1, endpoint, "r")

    assert cuts.committed(1) == [Done("one", 1), Done("two", 1)]


def test_a_request_for_a_new_cut_waits_for_the_one_after_that_under_way() -> None:
    cuts = coordinator()
    cuts.request("schedule", 0.0)
    assert cuts.request("save", 1.0, anew=True) == []
    for endpoint in ENDPOINTS:
        cuts.part(1, endpoint, "r")

    assert cuts.committed(1) == [Done("schedule", 1)]
    assert cuts.tick(2.0) == []
    assert cuts.proposed == 2
    for endpoint in ENDPOINTS:
        cuts.part(2, endpoint, "r")
    assert cuts.committed(2) == [Done("save", 2)]


def test_a_request_for_a_new_cut_begins_one_at_once_if_none_is_under_way() -> None:
    cuts = coordinator()

    cuts.request("save", 0.0, anew=True)

    assert cuts.proposed == 1


def test_a_request_for_a_new_cut_survives_the_end_of_the_one_before() -> None:
    cuts = coordinator()
    cuts.request("schedule", 0.0)
    cuts.request("save", 1.0, anew=True)

    assert [type(each) for each in cuts.failed(1, "the disk is full")] == [Discard, Done]
    cuts.tick(2.0)
    for endpoint in ENDPOINTS:
        cuts.part(2, endpoint, "r")
    assert cuts.committed(2) == [Done("save", 2)]


def test_a_request_for_a_new_cut_fails_by_name_when_the_pserver_ends() -> None:
    cuts = coordinator()
    cuts.request("schedule", 0.0)
    for endpoint in ENDPOINTS:
        cuts.part(1, endpoint, "r")
    cuts.request("save", 1.0, anew=True)

    (done,) = cuts.end("the pserver is shutting down")

    assert isinstance(done, Done)
    assert (done.call, done.error and done.error.code) == ("save", ErrorCode.CUT_GIVEN_UP)
    assert cuts.committed(1) == [Done("schedule", 1)]


def test_a_superseded_coordinator_answers_requests_for_new_cuts() -> None:
    cuts, error = coordinator(), StorageError("another coordinator has taken over")
    cuts.request("schedule", 0.0)
    cuts.request("save", 1.0, anew=True)

    assert cuts.left_open(1, error, is_superseded=True) == [Done("schedule", 1, error)]
    assert cuts.tick(2.0) == [Done("save", 0, error)]


def test_numbers_go_on_where_a_former_process_was() -> None:
    cuts = coordinator(newest=41)
    cuts.request("cli", 0.0)

    assert cuts.proposed == 42


# --- when --------------------------------------------------------------------------------------


def test_cuts_are_due_by_steps_or_by_seconds_but_never_without_a_step() -> None:
    schedule = CutSchedule(every_steps=100, every_s=60.0)

    assert [schedule.is_due(*at) for at in [(99, 59.0), (100, 1.0), (1, 60.0), (0, 600.0)]] == [
        *(False, True, True, False)
    ]
    assert not CutSchedule().is_due(10**9, 10.0**9)


def test_a_coordinator_proposes_by_its_schedule_from_the_last_cut_on() -> None:
    steps = [0]
    cuts = CutCoordinator(("a:1",), CutSchedule(every_steps=10), 30.0, steps=lambda: steps[0])
    assert cuts.tick(0.0) == []
    steps[0] = 10

    cuts.tick(1.0)
    assert cuts.proposed == 1
    cuts.part(1, "a:1", "r")
    cuts.committed(1)

    steps[0] = 19
    cuts.tick(2.0)
    assert cuts.proposed == 0
    steps[0] = 20
    cuts.tick(3.0)
    assert cuts.proposed == 2


def test_the_newest_cuts_and_milestones_are_kept() -> None:
    assert Retention(keep=2).dropped([1, 2, 3, 4]) == [2, 1]
    assert Retention(keep=1, keep_every=10).dropped([9, 10, 11, 20, 21]) == [11, 9]
    assert Retention().dropped([3]) == []
    assert Retention(keep=1, in_use=2).dropped([1, 2, 3, 4]) == [3, 1]


def test_cuts_that_a_kept_one_builds_on_are_kept() -> None:
    bases = {1: (), 2: (1,), 3: (), 4: (3,), 5: (4, 3)}

    assert Retention(keep=1).dropped(bases, bases.__getitem__) == [2, 1]
    assert Retention(keep=1, keep_every=2).dropped(bases, bases.__getitem__) == []


@pytest.mark.parametrize("seed", range(200))
def test_after_any_deletion_each_cut_has_all_that_it_builds_on(seed: int) -> None:
    draw = random.Random(seed)
    numbers = sorted(draw.sample(range(1, 40), draw.randint(1, 20)))
    bases = {
        n: draw.sample(numbers[:at], min(at, draw.choice([0, 1, 1, 2])))
        for at, n in enumerate(numbers)
    }
    retention = Retention(draw.randint(1, 5), draw.choice([0, 2, 5]))

    dropped = retention.dropped(numbers, bases.__getitem__)

    left = set(numbers)
    for number in [0, *dropped]:  # a crash may come after each of them
        left.discard(number)
        assert all(closure([each], bases.__getitem__) <= left for each in left)
    wanted = [n for n in numbers if n in numbers[-retention.keep :] or is_milestone(retention, n)]
    assert left == closure(wanted, bases.__getitem__)


def is_milestone(retention: Retention, number: int) -> bool:
    return bool(retention.keep_every) and number % retention.keep_every == 0


# --- parts that wait for what becomes of their cut ------------------------------------------------


def test_reports_are_answered_when_the_cut_is_complete() -> None:
    cuts = coordinator()
    cuts.request("cli", 0.0)
    for endpoint in ENDPOINTS:
        cuts.part(1, endpoint, "r", call=f"of {endpoint}")

    answers = [Done(f"of {endpoint}", 1) for endpoint in ENDPOINTS]
    assert cuts.committed(1) == [*answers, Done("cli", 1)]
    assert cuts.part(1, "a:1", "r", call="repeated") == [Done("repeated", 1)]


def test_a_repeated_report_of_an_older_complete_cut_is_not_told_that_it_was_given_up() -> None:
    cuts = coordinator()
    for number in (1, 2, 3):
        cuts.request("cli", 0.0)
        if number == 2:
            cuts.failed(2, "b:1: no space is left")
            continue
        for endpoint in ENDPOINTS:
            cuts.part(number, endpoint, "r")
        cuts.committed(number)

    assert cuts.part(1, "b:1", "r", call="late") == [Done("late", 1)]
    (done,) = cuts.part(2, "c:1", "r", call="given up")
    assert done.error.code is ErrorCode.CUT_GIVEN_UP


def test_the_end_of_an_older_cut_of_a_former_coordinator_is_unknown() -> None:
    cuts = coordinator(newest=6, complete=5)

    assert cuts.part(4, "b:1", "r", call="late") == [Done("late", 0)]
    assert cuts.part(5, "b:1", "r", call="newest") == [Done("newest", 5)]
    (done,) = cuts.part(6, "b:1", "r", call="never complete")
    assert done.error.code is ErrorCode.CUT_GIVEN_UP


def test_reports_of_a_cut_that_is_given_up_fail_also_late_ones() -> None:
    cuts = coordinator()
    cuts.request("cli", 0.0)
    cuts.part(1, "a:1", "r", call="of a")

    _, of_a, _ = cuts.failed(1, "b:1: no space is left")
    (late,) = cuts.part(1, "c:1", "r", call="of c")

    for done in (of_a, late):
        assert done.error.code is ErrorCode.CUT_GIVEN_UP
    assert (of_a.call, late.call) == ("of a", "of c")


@pytest.mark.parametrize("base", [3, 5, 7])
def test_a_part_may_continue_the_newest_complete_cut_only(base: int) -> None:
    cuts = coordinator(newest=5, complete=4)
    cuts.request("cli", 0.0)
    cuts.part(6, "a:1", "r", base=4)

    discard, done = cuts.part(6, "b:1", "r", base=base)

    assert discard.why == f"b:1 continues cut {base}, which is not complete"
    assert done.error.code is ErrorCode.CUT_GIVEN_UP


def test_a_pserver_that_stops_gives_up_its_cut_unless_the_manifest_is_being_written() -> None:
    cuts = coordinator()
    assert cuts.end("the pserver is shutting down") == []
    cuts.request("cli", 0.0)
    assert cuts.end("the pserver is shutting down")[0] == Discard(1, "the pserver is shutting down")

    cuts.request("cli", 1.0)
    for endpoint in ENDPOINTS:
        cuts.part(2, endpoint, "r")
    assert cuts.end("the pserver is shutting down") == []
    assert cuts.committed(2) == [Done("cli", 2)]


def completed(cuts: CutCoordinator, number: int) -> list:
    for endpoint in ENDPOINTS:
        cuts.part(number, endpoint, "record", call=endpoint)
    return cuts.committed(number)


def test_a_change_of_the_number_of_trainers_is_announced_with_its_cut() -> None:
    cuts = coordinator()
    cuts.watch("t0", 0)

    assert cuts.request("scale", 1.0, 3) == [Announce("t0", 1, 3)]
    assert (cuts.proposed, cuts.trainers) == (1, 3)
    assert cuts.watch("late", 0) == [Announce("late", 1, 3)]
    assert Done("scale", 1) in completed(cuts, 1)
    assert cuts.trainers == 0


def test_a_change_waits_for_the_cut_under_way_and_for_other_changes() -> None:
    cuts = coordinator()
    cuts.request("save", 0.0)

    assert cuts.request("first", 1.0, 3) == cuts.request("second", 1.0, 1) == []
    assert cuts.trainers == 0
    assert {each.call for each in completed(cuts, 1)} == {*ENDPOINTS, "save"}
    cuts.tick(2.0)
    assert (cuts.proposed, cuts.trainers) == (2, 3)
    assert {each.call for each in completed(cuts, 2)} == {*ENDPOINTS, "first"}
    cuts.tick(3.0)
    assert (cuts.proposed, cuts.trainers) == (3, 1)
    assert {each.call for each in completed(cuts, 3)} == {*ENDPOINTS, "second"}
    assert cuts.tick(4.0) == []
    assert cuts.proposed == 0


def test_a_change_whose_cut_is_given_up_fails_and_is_not_tried_again() -> None:
    cuts = coordinator()
    cuts.request("scale", 0.0, 3)
    cuts.part(1, "a:1", "record", call="a")

    discard, *done = cuts.tick(31.0)

    assert isinstance(discard, Discard)
    assert [(each.call, each.error.code) for each in done] == [
        ("a", ErrorCode.CUT_GIVEN_UP),
        ("scale", ErrorCode.CUT_GIVEN_UP),
    ]
    assert cuts.tick(32.0) == []
    assert cuts.proposed == 0


@pytest.mark.parametrize("is_given_up", [False, True])
@pytest.mark.parametrize("is_queued", [False, True])
def test_a_repeated_request_for_a_change_ends_with_the_first(
    is_given_up: bool, is_queued: bool
) -> None:
    """Its caller reads one reply: what a second change did later would surprise everybody."""
    cuts, number = coordinator(), 2 if is_queued else 1
    if is_queued:
        cuts.request("save", 0.0)
    cuts.request("scale", 0.0, 3)
    assert cuts.request("scale again", 0.1, 3) == []
    if is_queued:
        completed(cuts, 1)
        cuts.tick(0.2)

    ended = cuts.failed(number, "b:1: no space") if is_given_up else completed(cuts, number)

    done = [each for each in ended if isinstance(each, Done) and "scale" in each.call]
    assert [each.call for each in done] == ["scale", "scale again"]
    assert {each.error is not None for each in done} == {is_given_up}
    assert cuts.tick(1.0) == []
    assert cuts.proposed == 0


def test_a_change_back_is_another_one() -> None:
    cuts = coordinator()
    for call, trainers in [("grow", 3), ("back", 2), ("grow again", 3), ("repeated", 3)]:
        cuts.request(call, 0.0, trainers)

    for number, trainers, calls in [(1, 3, {"grow"}), (2, 2, {"back"})]:
        assert (cuts.proposed, cuts.trainers) == (number, trainers)
        assert {each.call for each in completed(cuts, number)} - {*ENDPOINTS} == calls
        cuts.tick(number)
    assert {each.call for each in completed(cuts, 3)} - {*ENDPOINTS} == {"grow again", "repeated"}


def test_a_change_of_a_superseded_coordinator_fails() -> None:
    cuts, error = coordinator(), StorageError("another process has taken over")
    cuts.request("first", 0.0, 3)
    cuts.request("second", 0.0, 1)

    assert cuts.left_open(1, error, True) == [Done("first", 1, error)]
    assert cuts.tick(1.0) == [Done("second", 0, error)]


@pytest.mark.parametrize("event", ["give_up_changes", "end"])
def test_changes_are_given_up_at_the_end_of_a_job(event: str) -> None:
    cuts = coordinator()
    cuts.request("first", 0.0, 3)
    cuts.request("second", 0.0, 1)

    ended = getattr(cuts, event)("all trainers have completed")

    done = [each for each in ended if isinstance(each, Done)]
    assert {each.call for each in done} == {"first", "second"}
    assert {each.error.code for each in done} == {ErrorCode.CUT_GIVEN_UP}
    assert Discard(1, "all trainers have completed") in ended
    assert (cuts.tick(1.0), cuts.proposed) == ([], 0)


def test_an_ordinary_cut_stays_when_changes_are_given_up() -> None:
    cuts = coordinator()
    cuts.request("save", 0.0)

    assert cuts.give_up_changes("all trainers have completed") == []
    assert cuts.proposed == 1
