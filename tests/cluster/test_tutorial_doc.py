"""docs/tutorials/write-a-job.md: its files, run by its commands, in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pages import DOCS, page

TEXT = page("tutorials/write-a-job.md")
BLOCKS = re.findall(r"```(python|toml|sh)(?: title=\"([\w.]+)\")?\n(.*?)```", TEXT, re.S)


def in_folder(folder: Path, command: str) -> str:
    """Run a shell command with this interpreter's `python` and `psrt`; return what it prints."""
    own = f'python() {{ "{sys.executable}" "$@"; }}; psrt() {{ python -m psrt "$@"; }}'
    done = subprocess.run(
        ["bash", "-ec", f"{own}; {command}"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(DOCS.parent)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_commands_of_the_tutorial_succeed_in_order(tmp_path: Path) -> None:
    for kind, name, text in BLOCKS:
        if name:
            (tmp_path / name).write_text(text)
        elif kind == "sh":
            in_folder(tmp_path, text)

    assert "['user', 'item']" in in_folder(tmp_path, "python ask.py")
    assert (tmp_path / "model" / "manifest.json").exists()
