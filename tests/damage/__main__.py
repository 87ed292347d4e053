"""`python -m tests.damage`: damage each byte of each kind of durable file."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter

import click

from tests.damage.damages import cases_of, some_of
from tests.damage.files import directories, kind_of
from tests.damage.reading import fault_of


@click.command()
@click.option("--cases", default=10_000, show_default=True, help="How many of all cases to run.")
@click.option("--seed", default=0, show_default=True, help="Draws the cases.")
def main(cases: int, seed: int) -> None:
    """Damage durable files, and print what psrt finds; exit 1 if it misses one."""
    began, counts, faults = time.perf_counter(), Counter[str](), []
    every = [
        (left, case)
        for left in directories()
        for name, data in left.files.items()
        for case in cases_of(name, data)
    ]
    for left, case in some_of(every, cases, seed):
        counts[kind_of(case.name)] += 1
        if fault := fault_of(left, case):
            faults.append(fault)
            print(fault, file=sys.stderr, flush=True)
    took_s = round(time.perf_counter() - began, 1)
    whole = {"cases": counts.total(), "possible": len(every), "missed": len(faults)}
    print(json.dumps({**whole, "s": took_s, "kinds": dict(counts.most_common())}, indent=1))
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
