"""The how-to pages about cuts: their commands, in order, in an empty folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.pages import page, run_in

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

    printed = run_in(tmp_path, commands)

    assert re.search(r"^ +\d+  complete  20", printed, re.M)
    assert re.search(r"^resumed cut \d+ in epoch \d after \d+ steps$", printed, re.M)
    assert "steps; data of 2 trainers dealt again\n" in printed
    assert re.search(r"^cut \d+: whole, 4 files", printed, re.M)
