"""A script's end completes its trainer; a script that fails does not: real processes, whose
pserver is a stand-in that prints when the trainer completes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from psrt.fluid.running import ending
from tests.support.processes import ROOT, clean_environment

CONNECTED = """
import sys
import psrt.fluid as fluid
from psrt.fluid.running import connection

class Run:
    def __init__(self, program, scope, replicas, *how):
        self.executor, self.replicas = self, replicas
    def start(self):
        pass
    def close(self):
        print("completed")

connection.ConnectedRun = Run
program = fluid.Program()
def step():
    connection.connected(program, fluid.global_scope())
step()
"""
PYTHON = [sys.executable]
PSRT = [sys.executable, "-m", "psrt", "trainer"]

WENT_ON = """
import threading
thread = threading.Thread(target=sys.exit, args=(3,))
try:
    sys.exit(3)
except SystemExit:
    step()
thread.start()
thread.join()
"""
COMPLETED = {"its end": "", "exit code 0": "sys.exit(0)", "exits that did not end it": WENT_ON}
FAILED = {"an error": "1 / 0", "Ctrl-C": "raise KeyboardInterrupt"}


def ended(command: list[str], path: Path, last_lines: str) -> tuple[int, str]:
    """Exit code and output of a script that has connected and then does this."""
    path.write_text(CONNECTED + last_lines)
    run = subprocess.run(
        [*command, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        timeout=60,
        env=clean_environment() | {"PYTHONPATH": str(ROOT)},
    )
    return run.returncode % 256, run.stdout


@pytest.mark.parametrize("how", COMPLETED)
def test_a_script_that_ends_well_has_completed(tmp_path: Path, how: str) -> None:
    assert ended(PYTHON, tmp_path / "train.py", COMPLETED[how]) == (0, "completed\n")


@pytest.mark.parametrize("how", FAILED)
def test_a_script_that_fails_is_left_to_be_found_lost(tmp_path: Path, how: str) -> None:
    code, output = ended(PYTHON, tmp_path / "train.py", FAILED[how])

    assert code != 0
    assert output == ""


def test_plain_python_keeps_exit_codes_from_us_so_such_a_script_completes(tmp_path: Path) -> None:
    assert ended(PYTHON, tmp_path / "train.py", "sys.exit(3)") == (3, "completed\n")


def test_nothing_of_python_is_replaced(tmp_path: Path) -> None:
    """The exits of the interpreter stay its own while a trainer is connected."""
    path = tmp_path / "train.py"
    lines = "print(sys.exit.__name__, type(exit).__name__)"

    assert ended(PYTHON, path, lines) == (0, "exit Quitter\ncompleted\n")


@pytest.mark.parametrize(
    ("last_lines", "code", "output"),
    [
        ("1 / 0", 1, ""),
        ("raise KeyboardInterrupt", 130, ""),
        ("raise SystemExit(3)", 3, ""),
        ("sys.exit(3)", 3, ""),
        ("exit(3)", 3, ""),
        ("sys.exit('no data')", 1, ""),
        ("raise SystemExit(0)", 0, "completed\n"),
    ],
)
def test_psrt_trainer_sees_how_its_script_ended(
    tmp_path: Path, last_lines: str, code: int, output: str
) -> None:
    assert ended(PSRT, tmp_path / "train.py", last_lines) == (code, output)


def test_an_error_before_the_last_step_has_ended_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    ending.went_on()
    monkeypatch.setattr(sys, "last_value", ValueError("of an earlier cell"), raising=False)

    assert ending.failed()
    ending.went_on()
    assert not ending.failed()
