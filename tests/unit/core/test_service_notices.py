"""Notices to a service manager: every sequence of five events keeps the rules of sd_notify."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from psrt.core.service_manager import ServiceNotices
from psrt.core.service_manager.notices import EXTEND_S, Lines

STEP_S, LIMIT_S = 2.0, 7.0
EVENTS: dict[str, Callable[[ServiceNotices, float], Lines]] = {
    "ready": lambda n, now: n.ready(now, "serves"),
    "reloading": lambda n, now: n.reloading(now),
    "reloaded": lambda n, now: n.reloaded(now),
    "stopping": lambda n, now: n.stopping(now, LIMIT_S),
    "works": lambda n, now: n.tick(now, f"step {now:g}"),
    "hangs": lambda n, now: n.tick(now, None),
}


def names(lines: Lines) -> list[str]:
    return [line.partition("=")[0] for line in lines]


@pytest.mark.parametrize("watchdog_s", [0.0, 4.0])
def test_every_sequence_of_five_events_keeps_the_rules(watchdog_s: float) -> None:
    for events in itertools.product(EVENTS, repeat=5):
        notices, sent, was = ServiceNotices(watchdog_s), [], set()
        for number, event in enumerate(events):
            lines = names(EVENTS[event](notices, number * STEP_S))
            check(event, lines, was, watchdog_s)
            sent += lines
            was.add(event)
        assert sent.count("STOPPING") == ("stopping" in events)


def check(event: str, lines: Lines, was: set[str], watchdog_s: float) -> None:
    """The rules for the lines of one event, after the events that `was`."""
    if "stopping" in was:
        assert set(lines) <= {"EXTEND_TIMEOUT_USEC", "WATCHDOG"}
    elif "ready" not in was and event not in ("ready", "stopping"):
        assert lines == []
    if event == "hangs" and "stopping" not in was:
        assert lines == []
    if "WATCHDOG" in lines:
        assert watchdog_s
        assert event in ("ready", "works") or "stopping" in was
    if event == "works" and "ready" in was and "stopping" not in was:
        assert "STATUS" in lines
        assert ("WATCHDOG" in lines) == bool(watchdog_s)
    if event in ("reloading", "reloaded") and "ready" in was - {"stopping"}:
        expected = {"reloading": ["RELOADING", "MONOTONIC_USEC"], "reloaded": ["READY"]}[event]
        assert lines == ([] if "stopping" in was else expected)


def test_a_heartbeat_comes_at_half_of_the_time_of_the_watchdog() -> None:
    notices = ServiceNotices(4.0)
    notices.ready(100.0, "serves")

    assert notices.next_tick_s() == 102.0
    assert "WATCHDOG=1" in notices.tick(102.0, "serves")
    assert notices.next_tick_s() == 104.0


def test_a_process_that_ends_asks_for_more_time_up_to_its_limit() -> None:
    notices = ServiceNotices()
    notices.ready(0.0, "serves")

    first = notices.stopping(10.0, 20.0)
    later = [notices.tick(now, None) for now in (15.0, 20.0, 29.0, 30.0, 31.0)]

    assert first[-1] == f"EXTEND_TIMEOUT_USEC={int(EXTEND_S * 1e6)}"
    assert [names(lines) for lines in later] == [["EXTEND_TIMEOUT_USEC"]] * 3 + [[], []]
    assert later[2] == ["EXTEND_TIMEOUT_USEC=1000000"]


def test_a_status_is_sent_once_until_it_changes() -> None:
    notices = ServiceNotices()

    lines = [notices.ready(0.0, "a"), notices.tick(5.0, "a"), notices.tick(10.0, "b")]

    assert lines == [["READY=1", "STATUS=a"], [], ["STATUS=b"]]
