"""`psrt doctor`: what is wrong with this host or a running job, and what to do about it."""

from __future__ import annotations

import dataclasses
import json
from contextlib import closing

import click

import psrt
from psrt.cli import results
from psrt.cli.options import access_options
from psrt.doctor import Finding, check_cluster, check_host, check_reachability, host_facts
from psrt.rpc.hosts import split_endpoint
from psrt.status import Gatherer

_EPILOG = """\b
Examples:
  psrt doctor                                     this host
  psrt doctor host-a:6170 host-b:6170             and a running job
  psrt doctor --checkpoint-dir /srv/cuts          and the disk of its cuts
Exit code: 0 = nothing was found, 1 = something was.
"""


@click.command(epilog=_EPILOG)
@click.argument("endpoints", nargs=-1, metavar="[HOST:PORT...]")
@click.option("--checkpoint-dir", default="", metavar="DIR", help="Directory of cuts to test.")
@click.option("--cache-dir", default="", metavar="DIR", help="Directory of compiled kernels.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as one JSON array.")
@click.option(
    "--timeout-s",
    default=5.0,
    show_default=True,
    type=click.FloatRange(min=0.001),
    help="Longest wait for a pserver, in seconds.",
)
@access_options
def doctor(
    *, endpoints: tuple[str, ...], checkpoint_dir: str, cache_dir: str, as_json: bool, **own: float
) -> int:
    """Find what is wrong with this host or a running job.

    Each finding names the place, what is wrong, and what to do. Nothing is changed: the command
    reads facts, and writes and deletes one small file in --checkpoint-dir.
    """
    found = check_host(host_facts(cache_dir, checkpoint_dir))
    if endpoints:
        found += _of_job(endpoints, own["timeout_s"])
    if as_json:
        results.write(json.dumps(list(map(dataclasses.asdict, found)), indent=2))
    else:
        results.write("\n".join(map(str, found)) or "Nothing is wrong that psrt doctor looks for.")
    return 1 if found else 0


def _of_job(endpoints: tuple[str, ...], timeout_s: float) -> list[Finding]:
    for endpoint in endpoints:
        split_endpoint(endpoint)  # raises for what is none
    with closing(Gatherer(endpoints, timeout_s)) as gatherer:
        facts = gatherer.gather()
    return [*map(check_reachability, facts.unreachable), *check_cluster(facts, psrt.__version__)]
