"""`python -m tests.sim`: many histories, or one."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext

import click

from tests.sim.history import run
from tests.sim.mutations import MUTATIONS
from tests.sim.scenario import MODES, Scenario, drawn, durable, with_backups, with_deltas
from tests.sim.shrinking import shrunk


@click.command()
@click.option("--histories", default=200, show_default=True, help="How many seeds to run.")
@click.option("--first", default=0, show_default=True, help="The first seed.")
@click.option("--mode", type=click.Choice(list(MODES)), help="One mode only.")
@click.option("--show", is_flag=True, help="Print every history, with all frames.")
@click.option("--durable", "is_durable", is_flag=True, help="Pservers recover from cuts.")
@click.option("--planted", type=click.Choice(list(MUTATIONS)), help="Run with this planted bug.")
@click.option("--deltas", "has_deltas", is_flag=True, help="…, and from local cuts.")
@click.option("--backups", "has_backups", is_flag=True, help="Pservers have backups.")
def main(
    histories: int,
    first: int,
    mode: str | None,
    show: bool,
    is_durable: bool,
    planted: str | None,
    has_deltas: bool,
    has_backups: bool,
) -> None:
    """Run simulated histories; exit 1 if one of them breaks a promise.

    A failing history is printed with the fewest faults that it fails with.
    """
    with MUTATIONS[planted].planted() if planted else nullcontext():
        draw = with_deltas if has_deltas else durable if is_durable else drawn
        draw = with_backups if has_backups else draw
        sys.exit(_run(range(first, first + histories), mode, show, draw))


def _run(
    seeds: range, mode: str | None, show: bool, draw: Callable[[int, str | None], Scenario]
) -> bool:
    ends: Counter[str] = Counter()
    broken, cuts, began = 0, 0, time.perf_counter()
    for seed in seeds:
        verdict = run(draw(seed, mode))
        ends.update(end.split(":")[0] for end in verdict.ends.values())
        cuts += verdict.cuts
        if show:
            print("\n".join(verdict.trace))
        if verdict.violation:
            broken += 1
            least = shrunk(verdict.scenario, lambda each: bool(run(each).violation))
            print(run(least), end="\n\n", flush=True)
    took_s = time.perf_counter() - began
    print(f"{len(seeds)} histories in {took_s:.1f} s, {broken} broken, {cuts} cuts; {dict(ends)}")
    return broken > 0


if __name__ == "__main__":
    main()
