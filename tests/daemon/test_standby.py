"""`psrt pserver --standby`: it waits for a line, and becomes the pserver of the line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.carriers import eventually
from tests.support.processes import DEADLINE_S, ROOT


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    with (tmp_path / "standby.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "psrt", "pserver", "--standby"],
            cwd=ROOT,
            env=dict(os.environ),
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
        )
    eventually(
        lambda: "stands by" in (tmp_path / "standby.log").read_text(), "stands by", DEADLINE_S
    )
    yield process
    process.kill()
    process.wait()
    assert process.stdin is not None
    process.stdin.close()


def send(process: subprocess.Popen[bytes], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line.encode())
    process.stdin.flush()


def test_it_becomes_the_pserver_that_it_is_sent(
    waiting: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    ready, log = tmp_path / "ready.json", tmp_path / "pserver.log"
    log.write_text("of the killed pserver\n")
    flags = ["--port", "0", "--ready-file", str(ready)]

    send(waiting, json.dumps({"flags": flags, "log": str(log)}) + "\n")
    eventually(ready.exists, "a pserver that serves", DEADLINE_S)

    assert json.loads(ready.read_text())["pid"] == waiting.pid
    waiting.send_signal(signal.SIGTERM)
    assert waiting.wait(DEADLINE_S) == 0
    first, *others = log.read_text().splitlines()
    assert first == "of the killed pserver"
    assert any("psrt pserver ready on" in line for line in others)


def test_it_ends_with_the_process_that_started_it(waiting: subprocess.Popen[bytes]) -> None:
    waiting.communicate(timeout=DEADLINE_S)

    assert waiting.returncode == 0


def test_another_line_is_refused_by_name(waiting: subprocess.Popen[bytes], tmp_path: Path) -> None:
    send(waiting, "take over\n")

    assert waiting.wait(DEADLINE_S) == 2
    assert "which is no JSON with flags and log" in (tmp_path / "standby.log").read_text()
