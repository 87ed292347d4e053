"""parallel: files in reading order.

shares      Cutting a batch into the shares of replicas: uneven where it must be, never an error
loss_start  What the gradient of the loss begins with in each replica, by the gradient scale
            strategy
replicas    Copies of a program that work on shares of one batch, and the parameters they see
in_place    Sparse tables that replicas look up where they stand, whole in the scope
aggregate   Making one gradient of those of the replicas
ssa         Dependencies among computations that share memory: the graph that a thread pool
            walks
chains      Fewer hand-overs: nodes between which nothing else could run become one node
places      What the ops of replicas read and write, as places of the dependency graph
drawing     The dependency graph of a parallel executor for the eye, as Graphviz dot
summing     The nodes of a graph that make one gradient of those of the replicas
cutting     Updates cut in parts for all threads: often the last nodes of a step, when others
            have no work
plan        From replicas to a graph: which ops run, in which order they may, and what is added
            to them
schedule    One walk along a graph: which nodes may start, given which are done
workers     The threads that walk graphs: a thin shell around `Schedule`
pool        A walk along a graph by a pool of threads, with BLAS held back and errors given
            their names
epoch       Running batches until the data end: one after the other, or by replicas that do not
            wait
parallel    The parallel executor: a dependency graph built once, replicas of the program, a
            thread pool
"""

from __future__ import annotations

from psrt.executor.parallel.epoch import EpochResult
from psrt.executor.parallel.parallel import ParallelExecutor
from psrt.executor.parallel.replicas import PASSES

__all__ = ["PASSES", "EpochResult", "ParallelExecutor"]
