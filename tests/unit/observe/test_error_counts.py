"""Errors by code: bounded, the newest of each kept with its hint."""

from __future__ import annotations

from psrt.core.errors import DeadlineError, TableError
from psrt.observe.error_counts import MOST_LETTERS, ErrorCounts
from tests.support.clock import ManualClock


def test_errors_are_counted_by_code_and_the_newest_comes_first() -> None:
    clock = ManualClock()
    counts, began_s = ErrorCounts(clock.now), clock.now()
    counts.note(TableError("table 'a' is not there.", hint="Register it."), 1)
    counts.note(DeadlineError("it waited."))
    clock.advance(2.0)
    counts.note(TableError("table 'b' is not there.", hint="Register it, too."), 2)
    clock.advance(1.5)

    newest, oldest = counts.describe()

    assert clock.now() == began_s + 3.5
    assert newest == {
        "code": "TABLE_UNKNOWN",
        "count": 2,
        "message": "table 'b' is not there.",
        "hint": "Register it, too.",
        "trainer": 2,
        "age_s": 1.5,
    }
    assert (oldest["code"], oldest["trainer"], oldest["age_s"]) == ("DEADLINE", None, 3.5)


def test_a_message_of_any_length_takes_bounded_memory() -> None:
    counts = ErrorCounts()

    counts.note(TableError("x" * 10_000, hint="y" * 10_000))

    (record,) = counts.describe()
    assert len(record["message"]) == len(record["hint"]) == MOST_LETTERS
