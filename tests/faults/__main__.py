"""`bin/faults`: many rounds, or one."""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path

import click

from tests.faults.clocks import compiler, preload
from tests.faults.disks import can_mount
from tests.faults.drawing import CARRIERS
from tests.faults.hosts import can_make
from tests.faults.ledger_job import MODES
from tests.faults.report import Totals, line_of
from tests.faults.rounds_of_seeds import Draw, round_of
from tests.sim.mutations import MUTATIONS
from tests.support.many_seeds import results_of


@click.command()
@click.option("--rounds", default=20, show_default=True, help="How many seeds to run.")
@click.option("--seed", default=0, show_default=True, help="The first seed.")
@click.option("--mode", type=click.Choice(list(MODES)), help="One mode only.")
@click.option("--carrier", type=click.Choice(CARRIERS), help="One carrier only.")
@click.option("--pservers-die", is_flag=True, help="Kill and recover pservers in running jobs.")
@click.option("--all", "both", is_flag=True, help="--pservers-die in every other round.")
@click.option("--clocks", is_flag=True, help="Move wall clocks by hours; needs a C compiler.")
@click.option("--hosts", is_flag=True, help="A network for each process; needs root.")
@click.option("--jobs", type=click.IntRange(1), default=1, help="Rounds at a time.")
@click.option("--minutes", type=float, help="Begin no round after this time.")
@click.option("--planted", type=click.Choice(list(MUTATIONS)), help="Run with this planted bug.")
@click.option("--show", is_flag=True, help="Print all about every round.")
@click.option("--keep", is_flag=True, help="Keep the files of failing rounds.")
@click.option("--report", type=click.Path(path_type=Path), help="Write totals to this JSON file.")
def main(
    rounds: int,
    seed: int,
    mode: str | None,
    carrier: str | None,
    pservers_die: bool,
    both: bool,
    clocks: bool,
    hosts: bool,
    jobs: int,
    minutes: float | None,
    planted: str | None,
    show: bool,
    keep: bool,
    report: Path | None,
) -> None:
    """Run rounds of real clusters under faults; exit 1 if one of them breaks a promise."""
    if clocks and compiler() is None:
        raise click.UsageError("--clocks needs a C compiler, and there is no cc.")
    if hosts and not can_make():
        raise click.UsageError("--hosts needs root, and the commands ip and bridge.")
    with tempfile.TemporaryDirectory() as place:
        disks = can_mount(Path(place) / "disk")
        if clocks:
            preload(Path(place))
        if not disks:
            print("disks have no faults here: this user may not mount one", flush=True)
        die = None if both else pservers_die
        draw = Draw(mode, carrier, die, disks, planted or "", show, keep, clocks, hosts)
        totals = Totals()
        for outcome, text in results_of(
            partial(round_of, draw), range(seed, seed + rounds), jobs, minutes
        ):
            totals.add(outcome)
            print(line_of(outcome), flush=True)
            if text:
                print(text, end="\n\n", flush=True)
            if report is not None:
                totals.write(report)
    print(f"{totals.rounds} rounds, {len(totals.broken)} broken; {totals.plain()}")
    sys.exit(bool(totals.broken))


if __name__ == "__main__":
    main()
