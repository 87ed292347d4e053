"""A message of a stranger's bytes can neither forge a line, fill a disk nor steer a terminal."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from psrt.core import log, tracing


@pytest.fixture(params=["text"])
def written(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[io.StringIO]:
    monkeypatch.setattr(log, "_fields", {})
    root = logging.getLogger("psrt")
    former = root.handlers[:], root.level, root.propagate
    stream = io.StringIO()
    log.configure("pserver", stream=stream, form=request.param)
    yield stream
    log.configure("psrt")
    root.handlers[:], root.propagate = former[0], former[2]
    root.setLevel(former[1])


def emit(level: int, text: str, *args: object, at_s: float = 0.0) -> None:
    logger = logging.getLogger("psrt.test")
    record = logger.makeRecord(logger.name, level, "here", 1, text, args, None)
    record.created = at_s
    logger.handle(record)


def test_a_line_is_time_role_level_message(written: io.StringIO) -> None:
    emit(logging.INFO, "trainer %d joined", 3)

    time, rest = written.getvalue().split(" ", 1)
    assert len(time) == len("1970-01-01T00:00:00")
    assert rest == "pserver INFO trainer 3 joined\n"


def test_further_lines_are_indented_so_that_none_can_be_forged(written: io.StringIO) -> None:
    emit(logging.INFO, "table %s", "a\n2026-01-01T00:00:00 pserver INFO all is well")

    first, second = written.getvalue().splitlines()
    assert first.endswith("table a")
    assert second.startswith("    2026")


def test_control_characters_are_escaped(written: io.StringIO) -> None:
    emit(logging.INFO, "table %s", "\x1b[2J\r\x00\x9b\u202eé")

    assert written.getvalue().endswith("table \\x1b[2J\\r\\x00\\x9b\\u202eé\n")


def test_a_long_message_is_cut_and_names_what_is_missing(written: io.StringIO) -> None:
    emit(logging.INFO, "x" * 1_000_000)

    assert written.getvalue().endswith("x… (992,000 more characters)\n")
    assert len(written.getvalue()) < 8100


def test_a_traceback_is_whole(written: io.StringIO) -> None:
    try:
        raise ValueError("y" * 10_000)
    except ValueError:
        logging.getLogger("psrt.test").exception("it broke")

    assert "y" * 10_000 in written.getvalue()
    assert "\n    Traceback (most recent call last):\n" in written.getvalue()


def test_messages_that_repeat_are_counted(written: io.StringIO) -> None:
    for n in range(250):
        emit(logging.WARNING, "refused %d", n, at_s=n / 100)
    emit(logging.WARNING, "another", at_s=3.0)
    emit(logging.WARNING, "refused %d", 250, at_s=10.0)
    emit(logging.WARNING, "refused %d", 251, at_s=10.0)

    lines = written.getvalue().splitlines()
    assert [line.split("WARNING ")[1] for line in lines[:100]] == [
        f"refused {n}" for n in range(100)
    ]
    assert lines[100].endswith("another")
    assert lines[101].endswith("refused 250 (150 messages like this left out)")
    assert lines[102].endswith("refused 251")
    assert len(lines) == 103


def test_errors_are_all_written(written: io.StringIO) -> None:
    for n in range(150):
        emit(logging.ERROR, "lost %d", n)

    assert len(written.getvalue().splitlines()) == 150


def test_counts_of_places_are_bounded(written: io.StringIO) -> None:
    for n in range(3_000):
        emit(logging.INFO, f"template {n}")

    (limit,) = logging.getLogger("psrt").handlers[0].filters
    assert len(limit._places) <= 1_000  # type: ignore[union-attr]


# --- JSON ----------------------------------------------------------------------------------------

as_json = pytest.mark.parametrize("written", ["json"], indirect=True)


def events(written: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in written.getvalue().splitlines()]


@as_json
def test_a_json_line_has_time_level_role_logger_and_message(written: io.StringIO) -> None:
    emit(logging.WARNING, "table %s", "a\n\x1b[2J\u202e", at_s=1_700_000_000.25)

    assert events(written) == [
        {
            "time": "2023-11-14T22:13:20.250Z",
            "level": "warning",
            "role": "pserver",
            "logger": "psrt.test",
            "message": "table a\n\x1b[2J\u202e",
        }
    ]
    assert written.getvalue().isascii()
    assert "\x1b" not in written.getvalue()


@as_json
def test_fields_of_the_process_are_in_each_json_line(written: io.StringIO) -> None:
    log.add_fields(job="ctr", trainer=3)
    emit(logging.INFO, "begun")

    (event,) = events(written)
    assert (event["job"], event["trainer"]) == ("ctr", 3)


@as_json
def test_json_lines_have_tracebacks_and_bounds(written: io.StringIO) -> None:
    try:
        raise ValueError("bad")
    except ValueError:
        logging.getLogger("psrt.test").exception("x" * 10_000)

    (event,) = events(written)
    assert str(event["message"]).endswith("x… (2,000 more characters)")
    assert str(event["exception"]).endswith("ValueError: bad")


@pytest.mark.parametrize("written", ["json"], indirect=True)
def test_lines_of_a_call_name_it_and_its_caller(written: io.StringIO) -> None:
    with log.in_call("PUSH", caller=3):
        emit(logging.WARNING, "late")
    emit(logging.WARNING, "later")

    within, behind = map(json.loads, written.getvalue().splitlines())
    assert (within["call"], within["caller"]) == ("PUSH", 3)
    assert "call" not in behind


@pytest.mark.parametrize("written", ["json"], indirect=True)
def test_lines_of_a_traced_step_name_its_trace(written: io.StringIO) -> None:
    class OneSpan:
        traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

        def end(self, error: BaseException | None) -> None: ...

    with tracing.within(OneSpan()):
        emit(logging.WARNING, "late")
    emit(logging.WARNING, "later")

    within, behind = map(json.loads, written.getvalue().splitlines())
    assert within["trace_id"] == "0af7651916cd43dd8448eb211c80319c"
    assert within["span_id"] == "b7ad6b7169203331"
    assert "trace_id" not in behind


def test_warnings_of_another_package_go_where_those_of_psrt_go(written: io.StringIO) -> None:
    theirs = logging.getLogger("another_package")
    log.follow(theirs.name)

    theirs.warning("no answer")
    theirs.info("all is well")

    assert written.getvalue().endswith("pserver WARNING no answer\n")
    theirs.handlers.clear()
