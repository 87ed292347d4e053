"""Programs at work on one trainer; no network here, see `ports`.

In reading order:

    one var, one table   ports · scope · moment · cells · bindings · supply
    one op               compute (op type → closure) · lengths · parts · updates (local training)
    what takes time      costs · chrome_trace · profile
    one program          compiled · feeds · derived (ids before rows) · strategies · preparation
                         (passes) · merging (values of replicas) · fetches · announce ·
                         in_scope (arrays that fit) · sequential
    replicas of it       shares (of a batch) · loss_start · replicas · in_place
                         (tables) · aggregate
    a graph of them      ssa · chains · places · drawing · summing · cutting · plan
    threads              schedule · workers · pool · until_end · parallel
"""

from __future__ import annotations

from psrt.executor.bindings import RowBatch, distinct_ids, lookups_by_table
from psrt.executor.parallel import ParallelExecutor
from psrt.executor.ports import Gradient, GradSink, ParamSource
from psrt.executor.scope import Scope
from psrt.executor.sequential import Executor
from psrt.executor.strategies import BuildStrategy, ExecutionStrategy

__all__ = [
    "BuildStrategy",
    "ExecutionStrategy",
    "Executor",
    "GradSink",
    "Gradient",
    "ParallelExecutor",
    "ParamSource",
    "RowBatch",
    "Scope",
    "distinct_ids",
    "lookups_by_table",
]
