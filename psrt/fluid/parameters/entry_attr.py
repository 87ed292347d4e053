"""Admission of ids to an embedding by Fluid's names: `embedding(…, entry=CountFilterEntry(5))`.

Arguments are checked as in Fluid; docs/reference/tables.md describes the effects.
`ProbabilityEntry(p)` admits with p, where Fluid's admits with 1 − p.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from psrt.core.errors import ConfigError
from psrt.core.specs import Admission, CountFilter, Probability, ShowClick

__all__ = ["CountFilterEntry", "ProbabilityEntry", "ShowClickEntry"]


class CountFilterEntry:
    """Admit an id once it was shown `count_filter` times; raises `ConfigError` below 0."""

    def __init__(self, count_filter: int) -> None:
        if not isinstance(count_filter, int) or isinstance(count_filter, bool) or count_filter < 0:
            raise ConfigError(
                f"CountFilterEntry was given {count_filter!r}, which is no whole number from 0 on."
            )
        self.admission = CountFilter(count_filter)


class ProbabilityEntry:
    """Admit a share of all ids; raises `ConfigError` unless it is a float between 0 and 1."""

    def __init__(self, probability: float) -> None:
        if not isinstance(probability, float) or not 0 < probability < 1:
            raise ConfigError(
                f"ProbabilityEntry was given {probability!r}, which is no float between 0 and 1."
            )
        self.admission = Probability(probability)


class ShowClickEntry:
    """Admit by two data vars: how often each example was shown and clicked."""

    def __init__(self, show_name: str, click_name: str) -> None:
        if not isinstance(show_name, str) or not isinstance(click_name, str):
            raise ConfigError(
                f"ShowClickEntry was given {show_name!r} and {click_name!r}, which are no names of "
                "vars.",
                hint="Give var.name, not the var.",
            )
        self.admission = ShowClick(show_name, click_name)


Entry: TypeAlias = CountFilterEntry | ProbabilityEntry | ShowClickEntry


def admission_of(entry: Any) -> Admission | None:
    """Return psrt's admission of an entry; raises `ConfigError` for another value."""
    if entry is None:
        return None
    if not isinstance(entry, CountFilterEntry | ProbabilityEntry | ShowClickEntry):
        raise ConfigError(
            f"embedding was given entry {entry!r}.",
            hint="Give a CountFilterEntry, ProbabilityEntry or ShowClickEntry.",
        )
    return entry.admission
