"""`psrt status`: a running job, its rates, and its waits."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from contextlib import closing

import click

from psrt.cli import results
from psrt.cli.options import access_options
from psrt.core.errors import ErrorCode, UnavailableError
from psrt.rpc.hosts import split_endpoint
from psrt.status import ClusterFacts, Gatherer, report, waits

_EPILOG = """\b
Examples:
  psrt status 127.0.0.1:41217 127.0.0.1:41219      endpoints as psrt launch prints them
  psrt status host-a:6170 host-b:6170 --watch
  psrt status host-a:6170 --json
"""


@click.command(epilog=_EPILOG)
@click.argument("endpoints", nargs=-1, required=True, metavar="HOST:PORT...")
@click.option("--watch", is_flag=True, help="Ask again and again, with rates, until Ctrl-C.")
@click.option(
    "--every",
    "every_s",
    default=2.0,
    show_default=True,
    type=click.FloatRange(min=0.1),
    help="Seconds between two looks of --watch.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a look.")
@click.option(
    "--timeout-s",
    default=5.0,
    show_default=True,
    type=click.FloatRange(min=0.001),
    help="Longest wait for a pserver, in seconds.",
)
@access_options
def status(
    *, endpoints: tuple[str, ...], watch: bool, every_s: float, as_json: bool, timeout_s: float
) -> None:
    """Show a running job: its pservers, rates, and who waits for whom.

    Asks each pserver for its facts, which takes no time of the training. Rates need two looks, so
    without --watch the command looks twice, a second apart.
    """
    for endpoint in endpoints:
        split_endpoint(endpoint)
    with closing(Gatherer(endpoints, timeout_s)) as gatherer:
        before = gatherer.gather()
        _check_any(before)
        while True:
            time.sleep(every_s if watch else 1.0)
            now = gatherer.gather()
            _show(now, before, as_json=as_json, clears=watch and sys.stdout.isatty())
            if not watch:
                return
            before = now


def _check_any(facts: ClusterFacts) -> None:
    """Raise the reason if no pserver answers."""
    if not facts.reached:
        reasons = "; ".join(f"{each.endpoint}: {each.reason}" for each in facts.unreachable)
        raise UnavailableError(
            f"No pserver answers. {reasons}",
            code=ErrorCode.UNAVAILABLE,
            hint="Compare the endpoints with the lines 'psrt pserver ready on'.",
        )


def _show(now: ClusterFacts, before: ClusterFacts, *, as_json: bool, clears: bool) -> None:
    if as_json:
        plain = {"pservers": list(map(dataclasses.asdict, now.pservers))}
        results.write(json.dumps({**plain, "waits": list(map(str, waits(now)))}))
        return
    if clears:
        click.clear()
    results.write("\n".join(report(now, before)))
