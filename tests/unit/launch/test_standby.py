"""A process that stands by runs the command of a killed pserver, or else a new process does."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from psrt.launch.plan import PSERVER, ChildId, Command
from psrt.launch.processes import Process, Standby
from psrt.launch.replacements import again_of, standing_by, take_over_line
from tests.support.carriers import eventually

ECHO = "import sys; print(sys.argv[1:], repr(sys.stdin.readline()))"
"""A child that writes its flags and the line that it was sent to its log."""


@pytest.fixture
def command(tmp_path: Path) -> Command:
    words = (sys.executable, "-c", ECHO, PSERVER, "--host", "127.0.0.1", "--port", "0")
    log = tmp_path / "pserver.1.log"
    return Command(ChildId(PSERVER, 1), words, os.environ, log, tmp_path / "pserver.1.ready.json")


@pytest.fixture
def standby(command: Command) -> Iterator[Standby]:
    made = Standby(standing_by(command))
    yield made
    made.close()


def test_a_process_that_stands_by_has_the_settings_of_a_pserver_and_its_own_log(
    command: Command,
) -> None:
    waiting = standing_by(command)

    assert waiting.arguments == (*command.arguments, "--standby")
    assert waiting.log == command.log.with_name("standby.log")
    assert waiting.result != command.result


def test_the_line_has_the_flags_and_the_log_of_the_killed_pserver(command: Command) -> None:
    sent = json.loads(take_over_line(again_of(command, "127.0.0.1:6170")))

    assert sent["flags"] == ["--host", "127.0.0.1", "--port", "6170", "--recover"]
    assert sent["log"] == str(command.log)


def test_a_process_that_stands_by_takes_the_place_of_a_killed_pserver(
    command: Command, standby: Standby
) -> None:
    again = again_of(command, "127.0.0.1:6170")
    process = Process(again, now=1.0, standby=standby)

    eventually(lambda: process.has_just_ended(2.0), "the end of the child")
    log = command.log.with_name("standby.log").read_text()
    assert "--standby" in log
    assert repr(take_over_line(again)) in log
    assert process.child == ChildId(PSERVER, 1)


def test_without_a_process_that_stands_by_a_new_one_is_started(
    command: Command, standby: Standby
) -> None:
    standby.close()
    process = Process(again_of(command, "127.0.0.1:6170"), now=1.0, standby=standby)

    eventually(lambda: process.has_just_ended(2.0), "the end of the child")
    assert "--recover" in command.log.read_text()
