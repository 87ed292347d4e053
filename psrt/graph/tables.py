"""Options of sparse tables, public as `psrt.tables`: admission, growth and eviction of rows.

    table = psrt.tables.TableOptions(
        admission=psrt.tables.CountFilter(5),
        lifecycle=psrt.tables.Lifecycle(ttl_days=30, max_bytes=64 << 30),
    )
    layers.embedding(ids, (1, 16), is_distributed=True, param=psrt.Param(table=table))

Defaults and limits: docs/reference/tables.md.
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

__all__ = ["CountFilter", "Growth", "Lifecycle", "Probability", "Score", "ShowClick"]
__all__ += ["TableOptions"]
