"""Options of sparse tables, public as `psrt.tables`: which ids own rows, how rows grow and end.

    table = psrt.tables.TableOptions(
        admission=psrt.tables.CountFilter(5),
        lifecycle=psrt.tables.Lifecycle(ttl_days=30, max_bytes=64 << 30),
    )
    layers.embedding(ids, (1, 16), is_distributed=True, param=psrt.Param(table=table))

All of them with defaults and limits: docs/reference/tables.md.
"""

from __future__ import annotations

from psrt.core.specs import (
    CountFilter,
    Growth,
    Lifecycle,
    Probability,
    Score,
    ShowClick,
    TableOptions,
)

__all__ = [
    "CountFilter",
    "Growth",
    "Lifecycle",
    "Probability",
    "Score",
    "ShowClick",
    "TableOptions",
]
