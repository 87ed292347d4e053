"""`psrt status`: a running job, its rates, and its waits."""

from __future__ import annotations

import dataclasses
import json
import time

import click

from psrt.cli import results
from psrt.cli.operating.watching import watching
from psrt.cli.options import access_options
from psrt.core.threads import CrashReport
from psrt.rpc.hosts import split_endpoint
from psrt.status import ClusterFacts, Gatherer, StatusReport, gathering, waits

_EPILOG = """\b
Examples:
  psrt status 127.0.0.1:41217 127.0.0.1:41219      endpoints as psrt launch prints them
  psrt status host-a:6170 host-b:6170 --watch
  psrt status host-a:6170 --json
  psrt status host-a:6170 --web                    the job as a page, for a browser on this host
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
@click.option("--web", is_flag=True, help="Serve the page of the job on this host, until Ctrl-C.")
@click.option(
    "--port",
    default=0,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Port of --web; 0 = any free one.",
)
@click.option(
    "--timeout-s",
    default=5.0,
    show_default=True,
    type=click.FloatRange(min=0.001),
    help="Longest wait for a pserver, in seconds.",
)
@access_options
def status(
    *,
    endpoints: tuple[str, ...],
    watch: bool,
    every_s: float,
    as_json: bool,
    web: bool,
    port: int,
    timeout_s: float,
) -> None:
    """Show a running job: its pservers, rates, and who waits for whom.

    Asks each pserver for its facts, which takes no time of the training; one endpoint is enough,
    the others are those of the plan. Rates need two looks, so without --watch the command looks
    twice, a second apart.
    """
    for endpoint in endpoints:
        split_endpoint(endpoint)
    with gathering(endpoints, timeout_s) as (gatherer, first):
        if web:
            _serve(gatherer, port)
        else:
            _look(gatherer, first, every_s if watch else None, as_json)


def _look(gatherer: Gatherer, before: ClusterFacts, every_s: float | None, as_json: bool) -> None:
    """Look again and again, or once more without `every_s`."""
    with watching(is_drawn=every_s is not None and not as_json) as show:
        while True:
            time.sleep(every_s or 1.0)
            now = gatherer.gather()
            if as_json:
                _show_json(now)
            else:
                show(StatusReport.of(now, before))
            if every_s is None:
                return
            before = now


def _serve(gatherer: Gatherer, port: int) -> None:
    """Serve the page on this host alone: who reads it has the token of this command."""
    from psrt.observe.http_server import HttpServer
    from psrt.status.page import JobPage

    crashes, page = CrashReport(), JobPage(gatherer.gather)
    address = f"127.0.0.1:{port}"
    server = HttpServer(address, page.pages(), crashes, (), "the page", "--port")
    try:
        results.write(f"http://{server.endpoint}/")
        while True:
            time.sleep(3600.0)
    finally:
        page.close()
        server.close()


def _show_json(now: ClusterFacts) -> None:
    plain = {"pservers": list(map(dataclasses.asdict, now.pservers))}
    results.write(json.dumps({**plain, "waits": list(map(str, waits(now)))}))
