"""watching: files for Prometheus and Grafana, and the list of metrics as a page.

alerts.yml      alert rules
dashboard.json  a dashboard of one job
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import resources

from psrt.observe.catalogue import OF_PROCESSES, OF_PSERVERS, OF_TRAINERS, MetricSpec

__all__ = ["FILES", "list_of_metrics", "text_of"]

FILES = {"alerts": "alerts.yml", "dashboard": "dashboard.json"}


def text_of(name: str) -> str:
    """The content of one of `FILES`."""
    return resources.files(__name__).joinpath(FILES[name]).read_text(encoding="utf-8")


def list_of_metrics() -> str:
    """All metrics as tables of Markdown."""
    parts = ("Pservers", OF_PSERVERS), ("Trainers", OF_TRAINERS), ("All processes", OF_PROCESSES)
    return "\n\n".join(f"## {title}\n\n" + "\n".join(_table(specs)) for title, specs in parts)


def _table(specs: Iterable[MetricSpec]) -> Iterator[str]:
    yield "| metric | type | labels | |"
    yield "|---|---|---|---|"
    for spec in specs:
        labels = ", ".join(f"`{label}`" for label in spec.labels)
        yield f"| `{spec.name}` | {spec.kind} | {labels} | {spec.help} |"
