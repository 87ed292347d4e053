"""Completion in a shell: commands, choices of settings, files."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.shell_completion import ShellComplete

import psrt
from psrt.cli import main


def completed(*words: str) -> list[tuple[str, str]]:
    """The kinds and values that a shell offers for the last word."""
    shell = ShellComplete(main.psrt, {}, "psrt", "_PSRT_COMPLETE")
    *before, last = words
    return [(each.type, each.value) for each in shell.get_completions(before, last)]


def test_commands_complete_and_none_is_imported() -> None:
    script = (
        "import sys; from tests.unit.cli.test_completion import completed;"
        "print(completed('tr'), 'psrt.cli.trainer' in sys.modules)"
    )

    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )

    assert done.stdout == "[('plain', 'trainer')] False\n"


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("launch", "--check"), ("plain", "--checkpoint-dir")),
        (("launch", "--on", "sl"), ("plain", "slurm")),
        (("launch", "exa"), ("file", "exa")),
        (("launch", "--save", "mod"), ("file", "mod")),
        (("predict", "mod"), ("file", "mod")),
        (("checkpoint", "show", "cu"), ("file", "cu")),
    ],
)
def test_flags_choices_and_files_complete(words: tuple[str, ...], offered: tuple[str, str]) -> None:
    assert offered in completed(*words)


def test_the_version_is_printed_by_a_flag_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["--version"]) == 0
    assert capsys.readouterr().out == f"psrt {psrt.__version__}\n"
