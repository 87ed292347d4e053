"""A job as seen from outside: who waits for whom, and the lines of a report."""

from __future__ import annotations

from typing import Any

import pytest

from psrt.status import ClusterFacts, PserverFacts, StatusReport, Unreachable, waits
from psrt.status.summaries import cuts_of, errors_of

ENDPOINT = "a:6170"


def trainer(number: int, state: str = "running", silent_s: float | None = 0.5) -> dict[str, Any]:
    return {"trainer": number, "state": state, "silent_s": silent_s, "presence": "present"}


def facts(endpoint: str = ENDPOINT, at_s: float = 0.0, **status: Any) -> PserverFacts:
    usual = {"pid": 7, "job_id": "ctr", "mode": "Sync", "trainers": [trainer(0), trainer(1)]}
    return PserverFacts.of(endpoint, at_s, usual | status)


def texts(**status: Any) -> list[str]:
    return list(map(str, waits(ClusterFacts((facts(**status),)))))


def report(now: ClusterFacts, before: ClusterFacts | None = None) -> list[str]:
    return StatusReport.of(now, before).lines()


def test_nobody_waits_between_two_rounds() -> None:
    assert texts(round=7, waiting=[]) == []


def test_a_round_waits_for_the_trainers_without_a_push() -> None:
    trainers = [trainer(0), trainer(1, silent_s=0.1), trainer(2, silent_s=12.25)]

    assert texts(round=7, waiting=[0], waiting_s={"0": 12.5}, trainers=trainers) == [
        "a:6170: trainer 0 in round 7 has waited 12.5 s for trainers 1, 2, silent for 12.2 s"
    ]
    assert texts(round=7, waiting=[0], trainers=trainers) == [  # of an earlier release
        "a:6170: trainer 0 in round 7 waits for trainers 1, 2, silent for 12.2 s"
    ]


def test_a_round_with_all_pushes_waits_for_nobody() -> None:
    assert texts(round=7, waiting=[0, 1]) == []


@pytest.mark.parametrize("state", ["completed", "lost"])
def test_a_round_does_not_wait_for_trainers_that_have_left(state: str) -> None:
    assert texts(round=7, waiting=[0], trainers=[trainer(0), trainer(1, state)]) == []


def test_a_job_waits_for_trainers_that_were_never_seen() -> None:
    assert texts(trainers=[trainer(0), trainer(1, "unseen", None)]) == [
        "a:6170: the job waits for trainer 1 to start"
    ]


def test_a_clock_waits_for_those_that_are_furthest_behind() -> None:
    clock = {"clock": "ssp", "reached": [9, 4, 4], "waiting": [0]}
    trainers = [trainer(0), trainer(1), trainer(2, silent_s=3.0)]

    assert texts(clocks=[clock | {"waiting_s": {"0": 4.04}}], trainers=trainers) == [
        "a:6170: trainer 0 on clock ssp has waited 4.0 s for trainers 1, 2 at 4, silent for 3.0 s"
    ]
    assert texts(clocks=[clock], trainers=trainers) == [
        "a:6170: trainer 0 on clock ssp waits for trainers 1, 2 at 4, silent for 3.0 s"
    ]


def test_a_cut_waits_for_the_trainers_that_do_not_take_part() -> None:
    cut = {"number": 3, "waiting": [0, 2], "missing": [1], "for_s": 1.5}
    trainers = [trainer(0), trainer(1, silent_s=2.0), trainer(2)]

    assert texts(open_cut=cut, trainers=trainers) == [
        "a:6170: trainers 0, 2 at cut 3 have waited 1.5 s for trainer 1, silent for 2.0 s"
    ]


def test_a_recovery_and_loading_tables_are_named() -> None:
    assert texts(recovers_from=[1], loading={"emb": 0.5}) == [
        "a:6170: the recovery waits for pushes that trainer 1 sends again",
        "a:6170: calls wait for tables that are being loaded",
    ]


def test_many_trainers_are_counted() -> None:
    trainers = [trainer(number) for number in range(20)]

    (text,) = texts(round=1, waiting=[0], trainers=trainers)

    assert "trainers 1, 2, 3, 4, 5, 6, 7, 8 and 11 more" in text


# --- the report ----------------------------------------------------------------------------------

TABLE = {"kind": "sparse", "name": "emb", "bytes": 3 << 20, "rows": 1200}


def test_rates_are_those_between_two_looks() -> None:
    before = facts(at_s=10.0, round=100, counters={"pserver_rows_applied": 1000.0})
    now = facts(at_s=12.0, round=150, counters={"pserver_rows_applied": 9000.0}, tables=[TABLE])

    lines = report(ClusterFacts((now,)), ClusterFacts((before,)))

    assert lines[0] == "job ctr (Sync)"
    assert lines[3].split() == [
        *("a:6170", "round", "150", "1,200", "3", "MiB", "4,000", "25", "0.0", "0")
    ]
    assert "trainers: 2 running" in lines
    assert lines[-1] == "nobody waits for long, and no problem is known"


def test_a_restarted_pserver_has_no_rates() -> None:
    before, now = facts(round=100), facts(at_s=1.0, pid=8, round=3)

    assert report(ClusterFacts((now,)), ClusterFacts((before,)))[3].split()[-4:-1] == ["-"] * 3


def test_pservers_that_do_not_answer_are_named_with_the_reason() -> None:
    lines = report(ClusterFacts((facts(), Unreachable("b:6170", "Cannot connect."))))

    assert ["b:6170", "does", "not", "answer"] in [line.split()[:4] for line in lines]
    assert "b:6170: Cannot connect." in lines


def test_an_error_of_the_job_is_shown() -> None:
    error = {"code": 61, "message": "trainer 3 is lost", "hint": "See its log."}

    lines = report(ClusterFacts((facts(error=error),)))

    assert "a:6170: trainer 3 is lost See its log." in lines


def error(code: str, count: int, age_s: float) -> dict[str, Any]:
    texts = {"message": f"{code} at {age_s}.", "hint": "Do it."}
    return {"code": code, "count": count, "trainer": 1, "age_s": age_s, **texts}


def test_errors_of_all_pservers_are_counted_by_code_with_the_newest() -> None:
    a = facts(errors=[error("DEADLINE", 2, 9.0), error("OF_ANOTHER_RELEASE", 1, 50.0)])
    b = facts("b:6170", errors=[error("DEADLINE", 3, 4.0)])
    found = errors_of(ClusterFacts((a, b)))
    lines = report(ClusterFacts((a, b)))

    assert [(each.newest.code, each.count, each.endpoints) for each in found] == [
        ("DEADLINE", 5, ("a:6170", "b:6170")),
        ("OF_ANOTHER_RELEASE", 1, ("a:6170",)),
    ]
    assert [each.summary for each in found] == ["a wait passed its deadline", ""]
    assert "5 × DEADLINE, last 4 s ago: DEADLINE at 4.0. Do it." in lines


def cuts(**given: Any) -> dict[str, Any]:
    ends = {"complete": 2, "given_up": 1, "unknown": 0}
    usual = {"complete": 4, "proposed": 0, "newest": None, "writing": None, "given_up": None}
    return {**usual, "ends": ends, **given}


def test_the_cuts_of_a_job_have_the_bytes_of_all_parts() -> None:
    newest = {"number": 4, "bytes": 1 << 20, "took_s": 0.5, "age_s": 30.0}
    writing = {"number": 5, "for_s": 2.0, "bytes": None}
    given_up = {"number": 3, "why": "trainer 1 was late", "age_s": 60.0}
    a = facts(cuts=cuts(newest=newest, writing=writing))
    b = facts("b:6170", cuts=cuts(newest={**newest, "age_s": 29.0}, given_up=given_up))
    found = cuts_of(ClusterFacts((a, b)))
    lines = report(ClusterFacts((a, b)))

    assert found is not None
    assert found.newest == {**newest, "age_s": 29.0, "bytes": 2 << 20}
    assert found.writing == writing
    assert "".join(line for line in lines if line.startswith("cuts:")) == (
        "cuts: 4 is complete of 2 MiB, 29 s ago; 5 is being written, 2 s; "
        "3 was given up: trainer 1 was late"
    )


def test_a_cut_of_an_earlier_process_has_its_number_alone() -> None:
    found = cuts_of(ClusterFacts((facts(cuts=cuts()),)))

    assert found is not None
    assert found.newest == {"number": 4}
    assert cuts_of(ClusterFacts((facts(),))) is None


def test_unknown_and_missing_fields_do_no_harm() -> None:
    assert PserverFacts.of(ENDPOINT, 0.0, {"new": 1}).job == ""
    assert "waits for trainers" in "\n".join(
        report(ClusterFacts((PserverFacts.of(ENDPOINT, 0.0, {}),)))
    )
