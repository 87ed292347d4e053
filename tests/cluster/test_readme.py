"""Every command of the README runs, as written, from the root of the project."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


FEWER = {"bin/quickstart": "bin/quickstart sync 20000"}
"""Commands → commands that make less to train on."""


def shell_blocks() -> list[str]:
    """The ```sh blocks, in order; blocks marked ```text show output or other hosts."""
    return re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.S)


def commands() -> list[str]:
    lines = "\n".join(shell_blocks()).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip()]


def run(command: str) -> subprocess.CompletedProcess[str]:
    path = f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-ec", command],
        cwd=ROOT,
        env=os.environ | {"PATH": path, "PIP_COMPILE": "0"},  # few modules are imported
        capture_output=True,
        text=True,
        timeout=600,
    )


def test_the_readme_shows_quickstart_and_test_first() -> None:
    assert commands()[:2] == ["bin/quickstart", "bin/test"]


def test_ci_checks_builds_the_documentation_tests_and_packages() -> None:
    script = (ROOT / ".ci" / "run").read_text()

    assert "bin/test" in script.splitlines()
    assert all(step in script for step in ("bin/check", "bin/docs", "bin/package"))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_readme_command_succeeds_in_order() -> None:
    # bin/test is what runs this test; running it inside itself would never end.
    for command in (line for line in commands() if line != "bin/test"):
        done = run(FEWER.get(command, command))
        assert done.returncode == 0, f"$ {command}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"


def test_psrt_commands_of_the_readme_exist() -> None:
    words = [shlex.split(line) for line in commands()]
    named = {parts[1] for parts in words if parts[0] == "psrt"}

    listed = run(".venv/bin/python -m psrt --help").stdout

    assert named
    assert all(f"\n  {name} " in listed for name in named)
