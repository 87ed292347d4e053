"""Options of sparse tables, public as `psrt.tables`: admission, growth and eviction of rows.

    table = psrt.tables.TableOptions(
        admission=psrt.tables.CountFilter(5),
        lifecycle=psrt.tables.Lifecycle(ttl_days=30, max_bytes=64 << 30),
    )
    layers.embedding(ids, (1, 16), is_distributed=True, param=psrt.Param(table=table))

Defaults and limits: docs/reference/tables.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from psrt.core.specs import (
    CountFilter,
    Growth,
    Lifecycle,
    Probability,
    Score,
    ShowClick,
    TableOptions,
)
from psrt.graph.names import refuse_unknown

__all__ = ["CountFilter", "Growth", "Lifecycle", "Probability", "Score", "ShowClick"]
__all__ += ["TableOptions"]

if not TYPE_CHECKING:  # type checkers report unknown names themselves
    __getattr__ = refuse_unknown("psrt.tables", "option", __all__)
