"""Programs at work on one trainer; no network here, see `ports`.

In reading order: ports · scope · moment · cells (memory of vars) · bindings (rows of tables) ·
compute (op type → closure) · updates (local training) · compiled · feeds · sequential.
"""

from __future__ import annotations

from psrt.executor.bindings import RowBatch, distinct_ids, lookups_by_table
from psrt.executor.ports import Gradient, GradSink, ParamSource
from psrt.executor.scope import Scope
from psrt.executor.sequential import Executor

__all__ = [
    "Executor",
    "GradSink",
    "Gradient",
    "ParamSource",
    "RowBatch",
    "Scope",
    "distinct_ids",
    "lookups_by_table",
]
