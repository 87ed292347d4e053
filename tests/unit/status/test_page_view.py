"""Contents of the page of a job: who holds it up, rates, shards, hot ids, errors."""

from __future__ import annotations

import json
from typing import Any

import pytest

from psrt.status import ClusterFacts, PserverFacts, Unreachable, others_of_plan
from psrt.status.page.feed import EVERY_S, Feed
from psrt.status.page.view import view_of
from tests.support.clock import ManualClock

USUAL = {"pid": 7, "job_id": "ctr", "mode": "Sync", "round": 7}


def trainer(number: int, state: str = "running", silent_s: float | None = 0.5) -> dict[str, Any]:
    return {"trainer": number, "state": state, "silent_s": silent_s, "presence": "present"}


def facts(endpoint: str = "a:6170", at_s: float = 0.0, **status: Any) -> PserverFacts:
    members = {"trainers": [trainer(0), trainer(1, silent_s=9.0)]}
    return PserverFacts.of(endpoint, at_s, USUAL | members | status)


def view(*pservers: PserverFacts | Unreachable, before: Any = ()) -> dict[str, Any]:
    """The view as a browser reads it."""
    earlier = ClusterFacts(tuple(before)) if before else None
    return dict(json.loads(json.dumps(view_of(ClusterFacts(pservers), earlier, 1.0))))


WAITS = {"waiting": [0], "waiting_s": {"0": 8.5}}


def test_a_long_wait_is_named_once_with_its_advice() -> None:
    found = view(facts(**WAITS), facts("b:6170", **WAITS | {"waiting_s": {"0": 8.0}}))

    assert found["verdict"] == {
        "level": "wait",
        "text": "Trainer 0 in round 7 waits for trainer 1.",
        "detail": "See the log of trainer 1; kill -QUIT writes its stacks there.",
        "since_s": 8.5,
    }
    (wait,) = found["waits"]
    assert (wait["where"], wait["waiting"], wait["missing"]) == (["a:6170", "b:6170"], [0], [1])
    assert (wait["waited_s"], wait["silent_s"], wait["is_long"]) == (8.5, 9.0, True)
    waiter, awaited = found["trainers"]
    assert (waiter["waits_for"], waiter["waited_s"], waiter["is_awaited"]) == (
        "trainer 1",
        8.5,
        False,
    )
    assert (awaited["waits_for"], awaited["is_awaited"], awaited["is_long"]) == ("", True, True)


def test_a_short_wait_is_part_of_every_round() -> None:
    found = view(facts(waiting=[0], waiting_s={"0": 0.2}))

    assert found["verdict"]["level"] == "ok"
    assert [each["is_long"] for each in found["waits"]] == [False]


@pytest.mark.parametrize(
    ("given", "level", "text"),
    [
        ((Unreachable("a:1", "Refused."),), "bad", "No pserver answers."),
        ((facts(), Unreachable("b:1", "Refused.")), "bad", "b:1 does not answer."),
        (
            (facts(error={"message": "Trainer 1 is lost.", "hint": ""}),),
            "bad",
            "The job has a problem.",
        ),
        ((facts(trainers=[]),), "idle", "No trainer has come yet."),
        ((facts(trainers=[trainer(0, "completed")]),), "idle", "All trainers have ended."),
        (
            (facts(trainers=[trainer(0), trainer(1, "unseen", None)]),),
            "wait",
            "The job waits for trainer 1 to start.",
        ),
    ],
)
def test_the_verdict_names_what_matters_most(given: Any, level: str, text: str) -> None:
    verdict = view(*given)["verdict"]

    assert (verdict["level"], verdict["text"]) == (level, text)


def test_rates_staleness_and_lateness_are_those_since_the_look_before() -> None:
    then = {"staleness": {"0": [10, 20, 3]}, "round_waits": {"1": [10, 1.0]}, "counters": {}}
    now = {
        "staleness": {"0": [14, 30, 6]},
        "round_waits": {"1": [14, 1.2]},
        "counters": {"pserver_rows_applied": 400.0},
        "round": 17,
    }
    found = view(facts(at_s=2.0, **now), before=[facts(at_s=0.0, **then)])

    assert found["totals"]["pushed_rows_per_s"] == 200.0
    assert found["totals"]["steps_per_s"] == 5.0
    one, other = found["trainers"]
    assert (one["staleness"], one["stalest"], one["late_s"]) == (2.5, 6, None)
    assert other["late_s"] == pytest.approx(0.05)
    assert view(facts(**now))["totals"]["steps_per_s"] is None


def table(first: int, last: int, hot: list[list[Any]], sampled: int) -> dict[str, Any]:
    return {
        "kind": "sparse",
        "name": "emb",
        "bytes": 1000,
        "rows": 10,
        "shards": [first, last],
        "virtual_shards": 1024,
        "stripes": [[first, last, 10]],
        "hot_ids": hot,
        "sampled_ids": sampled,
    }


def test_a_table_has_its_shards_and_the_ids_pulled_most_of_all_pservers() -> None:
    block = {"kind": "dense", "bytes": 64, "parameter": "w"}
    a = facts(tables=[table(0, 512, [[2**62, 0.5]], 300), {**block, "name": "w.0"}])
    b = facts("b:6170", tables=[table(512, 1024, [[7, 0.8]], 100), {**block, "name": "w.1"}])

    emb, dense = view(a, b)["tables"]

    assert (emb["bytes"], emb["rows"]) == (2000, 20)
    assert [part["endpoint"] for part in emb["shards"]] == ["a:6170", "b:6170"]
    assert [(each["id"], each["fraction"]) for each in emb["hot"]] == [
        (str(2**62), 0.375),
        ("7", 0.2),
    ]
    assert (dense["name"], dense["blocks"], dense["by_pserver"]) == (
        "w",
        2,
        {"a:6170": 64, "b:6170": 64},
    )


def test_errors_name_their_section_of_the_documentation() -> None:
    texts = {"message": "It waited.", "hint": "Raise it.", "trainer": 0, "age_s": 2.0}
    (error,) = view(facts(errors=[{"code": "DEADLINE", "count": 3, **texts}]))["errors"]

    assert error["docs"] == "docs/reference/errors.md#deadline"
    assert error["summary"] == "a wait passed its deadline"
    assert (error["count"], error["hint"], error["endpoints"]) == (3, "Raise it.", ["a:6170"])


def test_of_very_many_trainers_those_that_matter_come_first_and_the_rest_is_counted() -> None:
    members = [trainer(number) for number in range(300)]
    waiting = [number for number in range(300) if number != 299]
    found = view(facts(trainers=members, waiting=waiting, waiting_s={"0": 60.0}))

    assert len(found["trainers"]) == 256
    assert found["more_trainers"] == 44
    assert all(each["is_long"] for each in found["trainers"])


# --- looks that readers share ------------------------------------------------------------------


def test_readers_share_a_look_and_a_stream_ends_when_it_is_closed() -> None:
    clock, looks = ManualClock(), list[int]()

    def gather() -> ClusterFacts:
        looks.append(1)
        return ClusterFacts((facts(),))

    feed = Feed(gather, clock)
    one, other = feed.events(), feed.events()
    assert next(one) == next(other) == b"retry: 2000\n\n"
    assert next(one) == next(other)
    assert len(looks) == 1
    clock.advance(EVERY_S)
    assert json.loads(feed.view())["job"] == "ctr"
    assert len(looks) == 2
    feed.close()

    assert list(one) == []


def test_other_pservers_of_the_plan_are_known_by_their_incarnation() -> None:
    plan = {"a.example:6170": 11, "b.example:6170": 12, "c.example:6170": 13}
    here = facts("127.0.0.1:6170", pservers=plan, incarnation=11)
    asked = ClusterFacts((here, Unreachable("c.example:6170", "Refused.")))

    assert others_of_plan(asked) == ["b.example:6170"]
