"""Runs of a program over a scope, by psrt's executors, each made on first use.

An executor that shares memory or fuses ops needs the names of fetched vars in advance, so a run
collects them. For a new name or a longer program it makes a new executor, which takes over the
optimizer state.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from psrt.core.errors import ProgramError
from psrt.core.types import Array
from psrt.executor.memory import initial_values
from psrt.executor.parallel import ParallelExecutor
from psrt.executor.profiling import Profiler
from psrt.executor.program import Executor
from psrt.executor.strategies import BuildStrategy, ExecutionStrategy
from psrt.fluid.framework import FluidProgram
from psrt.fluid.running.fetched import ReplicaValues
from psrt.fluid.running.scope import FluidScope
from psrt.fluid.running.values import Batch, OnStep
from psrt.fluid.running.whole_tables import is_holdable, whole_graph
from psrt.graph.program import ROLES, Op, Parameter, Role
from psrt.graph.program import Program as Graph


class Run(Protocol):
    """Execution of one program over one scope."""

    program: FluidProgram

    def run(self, feed: Batch, fetch: Sequence[str], merged: bool = True) -> list[Any]: ...
    def run_from(self, batches: Iterable[Batch], fetch: Sequence[str], on_step: OnStep) -> None: ...
    def watch(self, profiler: Profiler | None, fetch: Sequence[str]) -> None: ...
    def close(self) -> None: ...


class LocalRun:
    """Run in this process: the executor that `_made` returns also updates parameters."""

    def __init__(
        self, program: FluidProgram, scope: FluidScope, build: BuildStrategy | None = None
    ) -> None:
        self.program, self.scope = program, scope
        self.build = build or default_build(program)
        self._keep: frozenset[str] = program.memory.keep if program.memory else frozenset()
        self._executor: Any = None
        self._size = (-1, -1, -1)
        self._last: Op | None = None  # another one if updates were replaced
        self._roles: tuple[Role, ...] = ()

    def run(self, feed: Batch, fetch: Sequence[str], merged: bool = True) -> list[Any]:
        """Compute one batch; returns the values of `fetch`. `merged` has effect with replicas."""
        values: list[Any] = self.executor(fetch).run(feed, fetch, roles=self._roles)
        return values

    def run_from(self, batches: Iterable[Batch], fetch: Sequence[str], on_step: OnStep) -> None:
        """Run every batch; `on_step` receives the values that each fetched."""
        for feed in batches:
            on_step(self.run(feed, fetch))

    def watch(self, profiler: Profiler | None, fetch: Sequence[str]) -> None:
        """Record the ops of later runs that fetch `fetch`; None stops the recording."""
        self.executor(fetch).profiler = profiler

    def executor(self, fetch: Sequence[str] = ()) -> Any:
        """Return psrt's executor, able to fetch `fetch`."""
        graph = self.program.graph
        size = (len(graph.ops), len(graph.parameters), len(graph.vars))
        last = graph.ops[-1] if graph.ops else None
        is_known = size == self._size and last is self._last
        if not is_known or (_rewrites(self.build) and not self._keep.issuperset(fetch)):
            _check_started(self.program, self.scope)
            # a program without ops returns what it is fed
            self._size, self._last = size, last
            self._roles = roles_of(graph) or ("forward",)
            self._keep |= self.program.persistables.union(fetch)
            before, self._executor = self._executor, self._made(self._keep)
            if before is not None:
                self._executor.continue_from(before)
        return self._executor

    def close(self) -> None:
        self._executor = None

    def _made(self, keep: frozenset[str]) -> Any:
        wanted = sorted(keep) if _rewrites(self.build) else ()
        return Executor(
            whole_graph(self.program, self.scope),
            self.scope,
            source=rows_of(self.program),
            build_strategy=self.build,
            keep=wanted,
        )


class ReplicatedRun(LocalRun):
    """Run by replicas that share each batch; it reads the parameters of run `shared`, if given."""

    def __init__(
        self,
        program: FluidProgram,
        scope: FluidScope,
        replicas: int | None,
        build: BuildStrategy | None = None,
        threading: ExecutionStrategy | None = None,
        shared: ReplicatedRun | None = None,
    ) -> None:
        super().__init__(program, scope, build)
        self._replicas, self._threading, self._shared = replicas, threading, shared
        self._values: ReplicaValues  # of the program that `_made` has made an executor for

    def run(self, feed: Batch, fetch: Sequence[str], merged: bool = True) -> list[Any]:
        """Compute one batch; unless `merged`, each value is a list of the replicas' values."""
        executor, asked = self.executor(fetch), self._values.merged(merged)
        values: list[Any] = executor.run(feed, fetch, roles=self._roles, return_merged=asked)
        return self._values.joined(values, merged)

    def run_async(self, batches: Iterable[Batch], fetch: Sequence[str]) -> list[Any]:
        """Run batches by replicas that do not wait; returns the values of `fetch` in the last."""
        values: list[Any] = self.executor(fetch).run_from(batches, fetch, self._roles).fetched
        return values

    def drop_memory(self) -> None:
        """Release the memory of temporary vars until the next run."""
        if self._executor is not None:
            self._executor.drop_memory()

    def close(self) -> None:
        if self._executor is not None:
            self._executor.close()
        super().close()

    def _made(self, keep: frozenset[str]) -> Any:
        shared = None if self._shared is None else self._shared.executor()
        made = ParallelExecutor(
            whole_graph(self.program, self.scope),
            self.scope,
            self._replicas,
            self.build,
            self._threading,
            share_vars_from=shared,
            source=rows_of(self.program),
            keep=sorted(keep) if _rewrites(self.build) else (),
        )
        if self._executor is not None:
            self._executor.close()
        self._values = ReplicaValues(self.program)
        return made


def sequential(program: FluidProgram, scope: FluidScope) -> Run:
    """Return the one run of `program` over `scope` without replicas."""
    if program not in scope.runs:
        scope.runs[program] = LocalRun(program, scope)
    run: Run = scope.runs[program]
    return run


def initialise(startup: FluidProgram, scope: FluidScope) -> None:
    """Fill `scope` with the initial values of every program in `startup`; resets state.

    Tables of a trainer of a cluster, and those too large for one, are left out: their rows are on
    pservers.
    """
    for program in startup.initialises:
        for name, parameter in program.graph.parameters.items():
            on_pservers = program.job is not None and parameter.sparse
            if not on_pservers and is_holdable(parameter):
                scope[name] = _first_values(program, parameter)
        scope.reset_state(program.graph)
        scope.steps.pop(program, None)
        _forget(scope, program.graph)


def _first_values(program: FluidProgram, parameter: Parameter) -> Array:
    """The values of a parameter before training: an array of the program's, or drawn ones."""
    array = program.initial_arrays.get(parameter.name)
    if array is None:
        return initial_values(parameter)
    if array.size != math.prod(parameter.shape):
        raise ProgramError(
            f"{parameter.name} has shape {parameter.shape}, and its NumpyArrayInitializer an array "
            f"of shape {array.shape}."
        )
    return array.reshape(parameter.shape).copy()


def roles_of(graph: Graph) -> tuple[Role, ...]:
    """Return the roles of a program's ops: a run computes all of them."""
    held = {op.role for op in graph.ops}
    return tuple(role for role in ROLES if role in held)


def rows_of(program: FluidProgram) -> Any:
    """Return the source of rows of tables that are in no scope, or None."""
    if program.rows_from is None and program.origin.connection is not None:
        return program.origin.connection.executor
    return program.rows_from


def _forget(scope: FluidScope, graph: Graph) -> None:
    """Drop runs that hold optimizer state of these parameters."""
    for owner, run in list(scope.runs.items()):
        if not graph.parameters.keys().isdisjoint(run.program.graph.parameters):
            run.close()
            del scope.runs[owner]


def _check_started(program: FluidProgram, scope: FluidScope) -> None:
    graph = program.graph
    away = rows_of(program) is not None
    needed = [
        p.name for p in graph.parameters.values() if is_holdable(p) and not (away and p.sparse)
    ]
    needed += [var.name for var in graph.vars.values() if var.kind == "state"]
    missing = [name for name in needed if name not in scope]
    if missing:
        raise ProgramError(
            f"{', '.join(missing[:3])} has no value yet, so the program cannot run.",
            hint="Run the startup program first: exe.run(fluid.default_startup_program()).",
        )


def default_build(program: FluidProgram) -> BuildStrategy:
    """Return the strategy of a run that is given none: every var can be fetched, unless
    `memory_optimize` was called."""
    if program.memory is None:
        return BuildStrategy(fuse_slot_rows=True)
    return BuildStrategy(
        memory_optimize=True, skip_grads=program.memory.skip_grads, fuse_slot_rows=True
    )


def _rewrites(build: BuildStrategy) -> bool:
    """Return whether a strategy may drop or overwrite a var before it is fetched."""
    return bool(
        build.memory_optimize
        or build.fuse_elewise_add_act_ops
        or build.fuse_all_optimizer_ops
        or build.fuse_embedding_pool_concat
        or build.fuse_loss_gradient
    )
