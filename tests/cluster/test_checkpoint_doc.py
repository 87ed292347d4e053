"""The how-to pages about cuts: their commands, in order, in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pages import DOCS, page

PAGES = page("how-to/checkpoint-and-resume.md") + page("how-to/use-saved-cuts.md")
COMMANDS = "".join(re.findall(r"```sh\n(.*?)```", PAGES, re.S))
FEWER = {"--out data": "--out data --rows 8000 --test-rows 1000", "STEPS=200": "STEPS=8"}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_commands_of_the_pages_succeed_in_order(tmp_path: Path) -> None:
    commands = COMMANDS
    for long, short in FEWER.items():
        assert long in commands
        commands = commands.replace(long, short)

    done = subprocess.run(
        ["bash", "-ec", f'psrt() {{ "{sys.executable}" -m psrt "$@"; }}\n{commands}'],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(DOCS.parent)},
        capture_output=True,
        text=True,
        timeout=550,
    )

    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert re.search(r"^ +\d+  complete  20", done.stdout, re.M)
    assert re.search(r"^resumed cut \d+ in epoch \d after \d+ steps$", done.stdout, re.M)
    assert "steps; data of 2 trainers dealt again\n" in done.stdout
    assert re.search(r"^cut \d+: whole, 4 files", done.stdout, re.M)
