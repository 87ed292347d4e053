"""The tables of a job: rows and memory by pserver, virtual shards, and the ids pulled most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psrt.status.facts import ClusterFacts, TableFacts

MOST_HOT = 10


def tables_of(facts: ClusterFacts) -> list[dict[str, Any]]:
    """A record for each sparse table and for each dense parameter, the largest first."""
    parts: dict[tuple[str, str], list[tuple[str, TableFacts]]] = {}
    for pserver in facts.reached:
        for table in pserver.tables:
            name = table.name if table.kind == "sparse" else table.parameter or table.name
            parts.setdefault((table.kind, name), []).append((pserver.endpoint, table))
    made = [_table(kind, name, held) for (kind, name), held in parts.items()]
    return sorted(made, key=lambda each: -each["bytes"])


def _table(kind: str, name: str, held: Sequence[tuple[str, TableFacts]]) -> dict[str, Any]:
    facts = {
        "name": name,
        "kind": kind,
        "bytes": sum(table.size_bytes for _, table in held),
        "by_pserver": _by_pserver(held),
    }
    if kind == "dense":
        return {**facts, "blocks": len(held)}
    return {
        **facts,
        "rows": sum(table.rows or 0 for _, table in held),
        "virtual_shards": max(table.virtual_shards for _, table in held),
        "shards": [_shards(endpoint, table) for endpoint, table in held if table.shards],
        "hot": _hot(held),
    }


def _by_pserver(held: Sequence[tuple[str, TableFacts]]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for endpoint, table in held:
        sizes[endpoint] = sizes.get(endpoint, 0) + table.size_bytes
    return sizes


def _shards(endpoint: str, table: TableFacts) -> dict[str, Any]:
    assert table.shards is not None
    first, last = table.shards
    return {"endpoint": endpoint, "first": first, "last": last, "stripes": table.stripes}


def _hot(held: Sequence[tuple[str, TableFacts]]) -> list[dict[str, Any]]:
    """The ids pulled most, with their fractions of all ids of the table that were pulled.

    An id lies at one pserver, which counts its fraction there. Ids are text: they have 64 bits, and
    a number of JavaScript has 53.
    """
    sampled = sum(table.sampled_ids for _, table in held) or 1
    found = [
        {
            "id": str(number),
            "fraction": fraction * table.sampled_ids / sampled,
            "endpoint": endpoint,
        }
        for endpoint, table in held
        for number, fraction in table.hot_ids
    ]
    return sorted(found, key=lambda each: -float(str(each["fraction"])))[:MOST_HOT]
