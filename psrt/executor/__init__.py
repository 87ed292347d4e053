"""Execution of programs on one trainer; network access goes through `ports`.

In reading order:

    ports       the protocols through which gradients leave and rows arrive
    strategies  build and execution options
    memory      scope, bound vars, ids and rows of a batch
    compute     op type to computation, by family
    profiling   time of ops, Chrome traces
    program     one program, compiled and run in sequence
    parallel    replicas of a program: a dependency graph and the threads that run it
"""

from psrt.executor.memory import RowBatch, Scope, distinct_ids, lookups_by_table
from psrt.executor.parallel import ParallelExecutor
from psrt.executor.ports import Gradient, GradSink, ParamSource
from psrt.executor.program import Executor
from psrt.executor.strategies import BuildStrategy, ExecutionStrategy

__all__ = ["BuildStrategy", "ExecutionStrategy", "Executor", "GradSink", "Gradient", "ParamSource"]
__all__ += ["ParallelExecutor", "RowBatch", "Scope", "distinct_ids", "lookups_by_table"]
