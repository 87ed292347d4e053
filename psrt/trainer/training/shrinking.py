"""Eviction of expired rows on all pservers, at the request of a trainer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from psrt.core.errors import ConfigError
from psrt.core.randomness import system_random
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method


@dataclass
class Shrunk:
    """Dropped rows of one table over all pservers, by reason ("rounds", "days", "score",
    "memory"), and their approximate bytes of memory."""

    rows: dict[str, int] = field(default_factory=dict)
    bytes: int = 0

    @property
    def total(self) -> int:
        return sum(self.rows.values())


def shrink(
    clients: Sequence[Client], tables: Sequence[str], dry_run: bool, timeout_s: float
) -> dict[str, Shrunk]:
    """Return the rows that each table has lost, or would lose; without `tables`, of all."""
    _check_names(tables)
    asked = pb.Shrink(tables=tables, number=system_random.getrandbits(63) | 1, dry_run=dry_run)
    shrunk: dict[str, Shrunk] = {}
    for client in clients:
        header = pb.Header(shrink=asked)
        reply = client.call(Method.SHRINK, header=header, timeout_s=timeout_s)
        for dropped in reply.header.shrink_reply.tables:
            found = shrunk.setdefault(dropped.table, Shrunk())
            found.bytes += dropped.bytes
            for reason, rows in dropped.rows.items():
                found.rows[reason] = found.rows.get(reason, 0) + rows
    return shrunk


def _check_names(tables: Sequence[object]) -> None:
    for table in tables:
        if not isinstance(table, str):
            raise ConfigError(
                f"shrink was given {table!r}, which is no name of a table; nothing was shrunk.",
                hint='Name tables one by one, shrink("a", "b"); no name means all.',
            )
