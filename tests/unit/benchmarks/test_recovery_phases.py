"""The benchmark of recovery finds gaps between steps, and the parts of a recovery."""

from __future__ import annotations

from benchmarks.recovery.phases import (
    TABLES,
    Failover,
    KilledPserver,
    TrainerTimes,
    figures,
    seconds_of,
)

LOG = """\
2026-01-01T00:00:00 pserver INFO kernels ready in 0.50 s
2026-01-01T00:00:01 pserver INFO restored 7 tables in 0.25 s
"""
FIRST = KilledPserver(1, killed=10.0, started=10.25, ready=12.0, log=LOG)
SECOND = KilledPserver(0, killed=20.0, started=20.5, ready=21.0, log="")


def trainer(*ends: float, events: tuple[tuple[str, float], ...] = ()) -> TrainerTimes:
    return TrainerTimes(fill_steps=0, ends=ends, events=events)


def test_a_gap_after_a_kill_may_have_begun_before_it() -> None:
    times = trainer(8.0, 9.5, 12.5, 13.0, 19.0)

    assert times.longest_gap(10.0, 18.0) == 3.0
    assert times.longest_gap(18.0, 20.0) == 6.0
    assert times.longest_gap(30.0, 40.0) == 0.0


def test_the_parts_of_a_recovery_add_up() -> None:
    events = (("met", 12.125), ("resent", 12.5))

    found = FIRST.phases(20.0, [trainer(events=events), trainer(events=(("met", 12.0625),))])

    assert found == {
        "noticed": 0.25,
        "process": 1.25,
        "kernels": 0.5,
        "load": 0.25,
        "met": 0.125,
        "resend": 0.375,
        "whole": 2.5,
    }


def test_a_recovery_that_no_trainer_reports_has_no_times() -> None:
    found = SECOND.phases(30.0, [trainer()])

    assert (found["kernels"], found["met"], found["whole"]) == (None, None, None)


def test_gaps_are_those_of_every_trainer_after_every_kill() -> None:
    one = trainer(8.0, 8.5, 9.0, 13.0, 19.5, 22.5, 23.0)
    other = trainer(8.0, 8.25, 9.5, 12.5, 19.75, 21.75)

    found = figures([FIRST, SECOND], [one, other])

    assert found["gaps_s"] == [6.5, 7.25, 3.0, 2.0]
    assert (found["gap_median_s"], found["gap_worst_s"]) == (4.75, 7.25)
    assert found["gap_without_kill_s"] == 1.25


def test_the_last_line_of_a_log_counts() -> None:
    assert seconds_of(TABLES, LOG + LOG.replace("0.25", "0.75")) == 0.75


def test_a_failover_lasts_until_the_last_trainer_goes_on_with_the_backup() -> None:
    one = trainer(9.0, 11.0, events=(("deposed", 10.25), ("served", 10.5)))
    other = trainer(9.5, 11.5, events=(("deposed", 10.375), ("served", 10.75)))

    found = Failover(1, killed=10.0).phases(20.0, [one, other])

    assert found == {"noticed": 0.25, "served": 0.5, "whole": 0.75}
