"""The process of an actor of Ray, without Ray: messages, and pservers that another launch takes."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from psrt.launch.engines.ray_actor import FREE_AFTER_S, ProcessActor

DEADLINE_S = 60.0
PROGRAM = """
import pathlib, sys
pathlib.Path(sys.argv[1]).write_text('{"endpoint": "a:1"}')
print("serves", flush=True)
sys.stdin.close()
import signal; signal.pause()
"""


@pytest.fixture
def actor() -> Iterator[ProcessActor]:
    found = ProcessActor({"net.py": b"x = 1"})
    yield found
    found.end()


def message(*arguments: str, directory: str = "") -> dict[str, object]:
    return {
        "child": "pserver.0",
        "arguments": list(arguments),
        "result": "ready.json",
        "directory": directory,
        "variables": {},
    }


def polled(actor: ProcessActor, kind: str) -> list[dict[str, object]]:
    """All messages up to the first one of a kind."""
    found: list[dict[str, object]] = []
    deadline_s = time.monotonic() + DEADLINE_S
    while kind not in [each["kind"] for each in found]:
        assert time.monotonic() < deadline_s, found
        found += actor.poll()
    return found


def test_a_process_runs_among_the_files_of_the_job_and_its_end_is_reported(
    actor: ProcessActor,
) -> None:
    actor.start(message(sys.executable, "-c", "import net; print(net.x)"))

    found = polled(actor, "ended")

    assert found[0]["kind"] == "started"
    assert "".join(each["text"] for each in found if each["kind"] == "output") == "1\n"
    assert found[-1] == {"kind": "ended", "child": "pserver.0", "code": 0}


def test_a_command_that_is_not_there_is_reported_as_ended(
    actor: ProcessActor, tmp_path: Path
) -> None:
    actor.start(message("/nowhere/psrt", directory=str(tmp_path)))

    output, ended = actor.poll()

    assert "No such file" in output["text"]
    assert ended["code"] == 127


def test_a_pserver_is_taken_over_once_its_launcher_is_silent(
    actor: ProcessActor, monkeypatch: pytest.MonkeyPatch
) -> None:
    actor.start(message(sys.executable, "-c", PROGRAM, "ready.json"))
    polled(actor, "result")
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    actor.poll()

    with pytest.raises(RuntimeError, match="another launch"):
        actor.adopt()
    monkeypatch.setattr(time, "monotonic", lambda: now + FREE_AFTER_S)

    facts = {each["kind"]: each for each in actor.adopt() or []}
    assert facts["result"]["text"] == '{"endpoint": "a:1"}'
    assert facts["started"]["pid"] > 0


def test_a_pserver_that_has_ended_is_not_taken_over(
    actor: ProcessActor, monkeypatch: pytest.MonkeyPatch
) -> None:
    actor.start(message(sys.executable, "-c", ""))
    polled(actor, "ended")
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + FREE_AFTER_S)

    assert actor.adopt() is None
