"""`python -m tests.sim`: many histories, or one."""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path

import click

from tests.sim.mutations import MUTATIONS
from tests.sim.report import Draw, Totals, result_of
from tests.sim.scenario import ALL_MODES
from tests.support.many_seeds import results_of

PROGRESS_EVERY = 1000


@click.command()
@click.option("--histories", default=200, show_default=True, help="How many seeds to run.")
@click.option("--first", default=0, show_default=True, help="The first seed.")
@click.option("--mode", type=click.Choice(list(ALL_MODES)), help="One mode only; not with --all.")
@click.option("--durable", "kind", flag_value="durable", help="Pservers recover from cuts.")
@click.option("--deltas", "kind", flag_value="deltas", help="…, and from local cuts.")
@click.option("--early", "kind", flag_value="early", help="…, are killed before the first one.")
@click.option("--backups", "kind", flag_value="backups", help="Pservers have backups.")
@click.option("--resizes", "kind", flag_value="resizes", help="The number of trainers changes.")
@click.option("--interrupted", "kind", flag_value="interrupted", help="Trainers are asked to end.")
@click.option("--attempts", "kind", flag_value="attempts", help="Jobs end, and are resumed.")
@click.option("--small", "is_small", is_flag=True, help="Short jobs; with --all most are.")
@click.option("--all", "kind", flag_value="", help="All kinds and modes, by fixed shares.")
@click.option("--jobs", type=click.IntRange(1), default=1, help="Processes that run histories.")
@click.option("--minutes", type=float, help="Begin no history after this time.")
@click.option("--report", type=click.Path(path_type=Path), help="Write totals to this JSON file.")
@click.option("--planted", type=click.Choice(list(MUTATIONS)), help="Run with this planted bug.")
@click.option("--show", is_flag=True, help="Print every history, with all frames.")
def main(
    histories: int,
    first: int,
    mode: str | None,
    kind: str | None,
    is_small: bool,
    jobs: int,
    minutes: float | None,
    report: Path | None,
    planted: str | None,
    show: bool,
) -> None:
    """Run simulated histories; exit 1 if one of them breaks a promise.

    A failing history is printed with the fewest faults that it fails with.
    """
    if kind == "" and (mode or is_small):
        left_out = "--mode" if mode else "--small"
        raise click.UsageError(f"--all has histories of every mode and size: leave out {left_out}")
    draw = Draw("plain" if kind is None else kind, mode, is_small, planted or "", show)
    seeds = range(first, first + histories)
    totals, began = Totals(), time.perf_counter()
    for result in results_of(partial(result_of, draw), seeds, jobs, minutes):
        totals.add(result)
        if result.text:
            print(result.text, flush=True)
        if totals.histories % PROGRESS_EVERY == 0:
            _tell(totals, time.perf_counter() - began, report)
    _tell(totals, time.perf_counter() - began, report)
    sys.exit(bool(totals.broken))


def _tell(totals: Totals, took_s: float, report: Path | None) -> None:
    print(totals.line(took_s), flush=True)
    if report is not None:
        totals.write(report, took_s)


if __name__ == "__main__":
    main()
