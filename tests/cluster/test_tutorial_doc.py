"""docs/tutorials/write-a-job.md: its files, run by its commands, in an empty folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.pages import page, run_in

TEXT = page("tutorials/write-a-job.md")
BLOCKS = re.findall(r"```(python|toml|sh)(?: title=\"([\w.]+)\")?\n(.*?)```", TEXT, re.S)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_commands_of_the_tutorial_succeed_in_order(tmp_path: Path) -> None:
    for kind, name, text in BLOCKS:
        if name:
            (tmp_path / name).write_text(text)
        elif kind == "sh":
            run_in(tmp_path, text)

    assert "['user', 'item']" in run_in(tmp_path, "python ask.py")
    assert (tmp_path / "model" / "manifest.json").exists()
