"""`psrt bench`: run the workloads of benchmarks/ and compare them with limits of this machine.

The benchmarks are part of psrt's source and not of an installed package: they are scripts to read
and to change. This command runs those of the checkout that contains the package, as `bin/bench`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

from psrt.core.errors import ConfigError

_CHECKOUT = Path(__file__).resolve().parents[2]
_EPILOG = """\b
Examples:
  psrt bench --quick                      all workloads, in a few minutes
  psrt bench w2 w3 --repeat 3             rows and dense parameters, medians of three runs
  psrt bench rows_by_size --json rows.json  for python -m benchmarks.pictures
"""


@click.command(epilog=_EPILOG)
@click.argument("workloads", nargs=-1, metavar="[WORKLOAD]...")
@click.option(
    "--quick", is_flag=True, help="Shorter runs: for a first impression, not for figures to quote."
)
@click.option("--repeat", default=1, show_default=True, metavar="N", help="Runs of each workload.")
@click.option(
    "--json",
    "json_file",
    type=click.Path(dir_okay=False, resolve_path=True),
    help="JSON file for all measurements.",
)
def bench(workloads: tuple[str, ...], quick: bool, repeat: int, json_file: str | None) -> int:
    """Measure psrt on this machine and compare it with the machine's limits.

    Without WORKLOAD, runs w1 to w8 and latency; rows_by_size and stress run only when named.
    docs/benchmarks.md describes them. Needs a checkout of psrt's source.
    """
    return subprocess.run(
        command(workloads, quick, repeat, json_file), cwd=checkout(), check=False
    ).returncode


def checkout() -> Path:
    """Return the directory that holds benchmarks/; raises `ConfigError` outside of a checkout."""
    if not (_CHECKOUT / "benchmarks" / "__main__.py").is_file():
        raise ConfigError(
            f"{_CHECKOUT} has no benchmarks: they are part of psrt's source and not of the "
            "installed package.",
            hint="Run bin/bench in a checkout of psrt.",
        )
    return _CHECKOUT


def command(
    workloads: tuple[str, ...], quick: bool, repeat: int, json_file: str | None
) -> list[str]:
    """Return the command line of the process that measures."""
    flags = ["--quick"] if quick else []
    flags += [f"--repeat={repeat}"] if repeat > 1 else []
    flags += [f"--json={json_file}"] if json_file else []
    return [sys.executable, "-m", "benchmarks", *workloads, *flags]
