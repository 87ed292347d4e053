"""A job as `psrt init` writes it, and the shell commands of its README."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

FEW_ROWS = {"psrt data synth-ctr": "psrt data synth-ctr --rows 4000 --test-rows 1000"}
"""Commands of READMEs → commands that make less to train on."""
DEADLINE_S = 300.0


def commands(job: Path) -> list[str]:
    """Lines of the README's ```sh blocks, in order."""
    blocks = re.findall(r"```sh\n(.*?)```", (job / "README.md").read_text(), re.S)
    return "".join(blocks).splitlines()


def shortened(command: str) -> str:
    """`command` with few rows, if it makes data."""
    for long, short in FEW_ROWS.items():
        command = command.replace(long, short)
    return command


def follow_readme(job: Path, programs: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """Run the commands in the folder `job`; yields each with its output once it has succeeded.

    `programs` is the directory of `psrt` and `python`. Raises `AssertionError` with the output of a
    command that fails.
    """
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    for command in map(shortened, commands(job)):
        done = subprocess.run(
            ["bash", "-ec", command],
            cwd=job,
            env={**environment, "PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=DEADLINE_S,
        )
        said = f"$ {command}\n{done.stdout}"
        assert done.returncode == 0, said
        yield said
