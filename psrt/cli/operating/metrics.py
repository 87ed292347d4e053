"""`psrt metrics`: files for those who watch psrt by Prometheus and Grafana."""

from __future__ import annotations

import click

from psrt.cli import results

_EPILOG = """\b
Examples:
  psrt metrics alerts > /etc/prometheus/rules/psrt.yml
  psrt metrics dashboard > psrt.json                   for Grafana: Dashboards, Import
  psrt metrics list                                    all metrics, as Markdown
"""


@click.command(epilog=_EPILOG)
@click.argument("what", type=click.Choice(("alerts", "dashboard", "list")))
def metrics(what: str) -> None:
    """Print alert rules of Prometheus, a dashboard of Grafana, or the list of metrics.

    The metrics themselves are at /metrics of a pserver that runs with --metrics HOST:PORT.
    """
    from psrt.observe.watching import list_of_metrics, text_of

    results.write(list_of_metrics() if what == "list" else text_of(what).rstrip("\n"))
