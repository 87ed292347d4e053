"""`psrt doctor`: what is wrong with this host or a running job, and what to do about it."""

from __future__ import annotations

import dataclasses
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import click

import psrt
from psrt.cli import results
from psrt.cli.options import access_options
from psrt.cli.plan import memory_needs
from psrt.doctor import (
    SILENT_S,
    Finding,
    check_addresses,
    check_cluster,
    check_cuts,
    check_host,
    check_needs,
    check_reachability,
    dump,
    host_facts,
    process_reports,
    pservers_here,
)
from psrt.rpc.hosts import split_endpoint
from psrt.status import ClusterFacts, Gatherer

_MOST_AT_ONCE = 32
_EPILOG = """\b
Examples:
  psrt doctor                                     this host
  psrt doctor host-a:6170 host-b:6170             and a running job
  psrt doctor host-a:6170 --job job.toml          and whether its pservers have enough memory
  psrt doctor --checkpoint-dir /srv/cuts          and the disk of its cuts, and the cuts
  psrt doctor host-a:6170 --dump > report.txt     a report about a job that hangs
Exit code: 0 = nothing was found, 1 = something was.
"""


@click.command(epilog=_EPILOG)
@click.argument("endpoints", nargs=-1, metavar="[HOST:PORT...]")
@click.option("--checkpoint-dir", default="", metavar="DIR", help="Directory of cuts to test.")
@click.option("--cache-dir", default="", metavar="DIR", help="Directory of compiled kernels.")
@click.option(
    "--job",
    default="",
    metavar="JOB.toml",
    help="Compare the memory of pservers with the plan of this job; builds its program.",
)
@click.option(
    "--silent-s",
    default=SILENT_S,
    show_default=True,
    type=click.FloatRange(min=0.0),
    help="Name a trainer that others have waited for this long, in seconds.",
)
@click.option(
    "--dump", "dumps", is_flag=True, help="Write a whole report, with the stacks of processes."
)
@click.option("--json", "as_json", is_flag=True, help="Print the findings as one JSON array.")
@click.option(
    "--timeout-s",
    default=3.0,
    show_default=True,
    type=click.FloatRange(min=0.001),
    help="Longest wait for the facts of a pserver, in seconds.",
)
@access_options
def doctor(*, endpoints: tuple[str, ...], as_json: bool, **own: Any) -> int:
    """Find what is wrong with this host or a running job.

    Each finding names the place, what is wrong, and what to do. Nothing is changed: the command
    reads facts, and writes and deletes one small file in --checkpoint-dir.

    With --dump it also writes who waits for whom, the state of the job, and the stacks of all
    processes of psrt on this host that this user may look into; these go on.
    """
    if as_json and own["dumps"]:
        raise click.UsageError("--dump writes text: leave out --json.")
    needs = _needs(endpoints, own["job"])
    facts = _facts(endpoints, own["timeout_s"]) if endpoints else None
    found = _findings(facts, endpoints, needs, own)
    if own["dumps"]:
        roles = pservers_here(facts.reached) if facts else {}
        now, processes = datetime.now(UTC), process_reports()
        results.write("\n".join(dump(now, psrt.__version__, found, facts, processes, roles)))
    elif as_json:
        results.write(json.dumps(list(map(dataclasses.asdict, found)), indent=2))
    else:
        results.write("\n".join(map(str, found)) or "Nothing is wrong that psrt doctor looks for.")
    return 1 if found else 0


def _needs(endpoints: tuple[str, ...], job: str) -> dict[str, float]:
    """Memory that each pserver needs; raises `ConfigError` for what is no endpoint."""
    for endpoint in endpoints:
        split_endpoint(endpoint)
    return memory_needs(job, endpoints) if job and endpoints else {}


def _facts(endpoints: tuple[str, ...], timeout_s: float) -> ClusterFacts:
    with closing(Gatherer(endpoints, timeout_s)) as gatherer:
        return gatherer.gather()


def _findings(
    facts: ClusterFacts | None,
    endpoints: tuple[str, ...],
    needs: dict[str, float],
    own: dict[str, Any],
) -> list[Finding]:
    cuts = own["checkpoint_dir"]
    found = check_host(host_facts(own["cache_dir"], cuts))
    found += check_cuts(cuts) if cuts else []
    if facts is None:
        return found
    with ThreadPoolExecutor(_MOST_AT_ONCE) as pool:
        reasons = pool.map(check_reachability, facts.unreachable)
        names = pool.map(check_addresses, endpoints)
    return [
        *found,
        *reasons,
        *(finding for each in names for finding in each),
        *check_cluster(facts, psrt.__version__, own["silent_s"]),
        *check_needs(facts, needs),
    ]
