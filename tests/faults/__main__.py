"""`bin/faults`: many rounds, or one."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click

from tests.faults.children import plant
from tests.faults.disks import can_mount
from tests.faults.drawing import CARRIERS, drawn
from tests.faults.ledger_job import MODES
from tests.faults.report import Totals, failure_of, line_of
from tests.faults.rounds import remove, run
from tests.sim.mutations import MUTATIONS


@click.command()
@click.option("--rounds", default=20, show_default=True, help="How many seeds to run.")
@click.option("--seed", default=0, show_default=True, help="The first seed.")
@click.option("--mode", type=click.Choice(list(MODES)), help="One mode only.")
@click.option("--carrier", type=click.Choice(CARRIERS), help="One carrier only.")
@click.option("--pservers-die", is_flag=True, help="Kill and recover pservers in running jobs.")
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
    planted: str | None,
    show: bool,
    keep: bool,
    report: Path | None,
) -> None:
    """Run rounds of real clusters under faults; exit 1 if one of them breaks a promise."""
    with tempfile.TemporaryDirectory() as place:
        disks = can_mount(Path(place) / "disk")
    if not disks:
        print("disks have no faults here: this user may not mount one", flush=True)
    options = "".join(f" --{n} {v}" for n, v in (("mode", mode), ("carrier", carrier)) if v)
    options += " --pservers-die" if pservers_die else ""
    totals = Totals()
    plant(planted or "")
    for each in range(seed, seed + rounds):
        outcome = run(drawn(each, mode, carrier, pservers_die, disks))
        totals.add(outcome)
        print(line_of(outcome), flush=True)
        if show or outcome.violation:
            print(failure_of(outcome, options), end="\n\n", flush=True)
        if not (keep and outcome.violation):
            remove(outcome)
        if report is not None:
            totals.write(report)
    print(f"{totals.rounds} rounds, {len(totals.broken)} broken; {totals.plain()}")
    sys.exit(bool(totals.broken))


if __name__ == "__main__":
    main()
