"""Executors of the W7 network, each with parameters of its own."""

from __future__ import annotations

import psrt
from psrt.executor.strategies import ReduceStrategy

FUSED = {"fuse_loss_gradient": True, "fuse_all_optimizer_ops": True, "memory_optimize": True}


def alone_executor(program: psrt.Program, loss: str) -> psrt.Executor:
    """An executor on one thread."""
    build = psrt.BuildStrategy(**FUSED)
    return psrt.Executor(program, scope_of(program), build_strategy=build, keep=[loss])


def shared_executor(
    program: psrt.Program, loss: str, threads: int, spin_s: float
) -> psrt.ParallelExecutor:
    """An executor with a replica on each thread and shared parameters."""
    build = psrt.BuildStrategy(reduce_strategy=ReduceStrategy.Reduce, **FUSED)
    options = psrt.ExecutionStrategy(spin_s=spin_s)
    return psrt.ParallelExecutor(program, scope_of(program), threads, build, options, keep=[loss])


def apart_executor(program: psrt.Program, loss: str) -> psrt.ParallelExecutor:
    """An executor with two replicas that do not wait for each other."""
    build = psrt.BuildStrategy(reduce_strategy=ReduceStrategy.Reduce, async_mode=True, **FUSED)
    return psrt.ParallelExecutor(program, scope_of(program), 2, build, keep=[loss])


def scope_of(program: psrt.Program) -> psrt.Scope:
    """A scope with initial parameters."""
    scope = psrt.Scope()
    scope.init_parameters(program)
    return scope
