"""parallel: files in reading order.

shares         near-equal shares of a batch, one for each replica
loss_gradient  the initial gradient of the loss in each replica, by the gradient scale strategy
replicas       copies of a program that compute shares of one batch, and their parameters
zero_copy      sparse tables whose rows replicas read in the scope, without a copy
aggregate      the sum of one gradient over the replicas
ssa            dependency graph of computations that share memory
chains         merging nodes between which nothing else could run
places         vars, shared parameters and buffers as places of the dependency graph
graphviz       the dependency graph as Graphviz dot
gradient_sums  graph nodes that sum the gradients of the replicas
split_updates  optimizer updates split into parts for all threads
plan           from replicas to a graph: its ops, their order, and the nodes added to them
schedule       one walk along a graph: nodes that may start, given those that are done
workers        threads that walk graphs: a thin shell around `Schedule`
pool           a walk by a pool of threads, with BLAS limited and errors that name the op
epoch          counts of a run until the data end
hogwild        replicas that do not wait for each other
parallel       the parallel executor: a dependency graph, replicas of the program, a thread pool
"""

from psrt.executor.parallel.epoch import EpochResult
from psrt.executor.parallel.parallel import ParallelExecutor
from psrt.executor.parallel.places import changed_in_place
from psrt.executor.parallel.replicas import PASSES

__all__ = ["PASSES", "EpochResult", "ParallelExecutor", "changed_in_place"]
