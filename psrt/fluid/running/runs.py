"""What runs a program over a scope: psrt's executors, made when they are first needed.

A run remembers what it was asked to fetch, because with shared memory or fused ops psrt must know
that beforehand; where a later fetch list or a longer program asks for more, the executor is made
anew and takes over the optimizer state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from psrt.core.errors import ProgramError
from psrt.executor.memory import initial_values
from psrt.executor.parallel import ParallelExecutor
from psrt.executor.profiling import Profiler
from psrt.executor.program import Executor
from psrt.executor.strategies import BuildStrategy, ExecutionStrategy
from psrt.fluid.framework import FluidProgram
from psrt.fluid.running.scope import FluidScope
from psrt.fluid.running.values import Batch
from psrt.graph.program import ROLES, Role
from psrt.graph.program import Program as Graph


class Run(Protocol):
    """One program at work."""

    program: FluidProgram

    def run(self, feed: Batch, fetch: Sequence[str], merged: bool = True) -> list[Any]: ...
    def run_from(
        self,
        batches: Iterable[Batch],
        fetch: Sequence[str],
        on_step: Callable[[list[Any]], None],
    ) -> None: ...
    def watch(self, profiler: Profiler | None, fetch: Sequence[str]) -> None: ...
    def close(self) -> None: ...


class LocalRun:
    """A program in this process, by an executor that `_made` makes; it updates what it trains."""

    def __init__(
        self, program: FluidProgram, scope: FluidScope, build: BuildStrategy | None = None
    ) -> None:
        self.program, self.scope = program, scope
        self.build = build or _build_of(program)
        self._keep: frozenset[str] = program.memory.keep if program.memory else frozenset()
        self._executor: Any = None
        self._size = (0, 0)
        self._roles: tuple[Role, ...] = ()

    def run(self, feed: Batch, fetch: Sequence[str], merged: bool = True) -> list[Any]:
        """One batch through all ops of the program; values of the vars in `fetch`.

        There is nothing to merge: the last argument is that of replicas.
        """
        values: list[Any] = self.executor(fetch).run(feed, fetch, roles=self._roles)
        return values

    def run_from(
        self,
        batches: Iterable[Batch],
        fetch: Sequence[str],
        on_step: Callable[[list[Any]], None],
    ) -> None:
        """Batches until they end; `on_step` is given what each fetched."""
        for feed in batches:
            on_step(self.run(feed, fetch))

    def watch(self, profiler: Profiler | None, fetch: Sequence[str]) -> None:
        """Record the ops of runs that fetch these from now on; None stops that."""
        self.executor(fetch).profiler = profiler

    def executor(self, fetch: Sequence[str] = ()) -> Any:
        """psrt's executor, able to fetch these."""
        graph = self.program.graph
        size = (len(graph.ops), len(graph.parameters))
        fits = size == self._size and (not _rewrites(self.build) or self._keep.issuperset(fetch))
        if not fits:
            _check_started(self.program, self.scope)
            self._size, self._roles = size, roles_of(graph)
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
            self.program.graph,
            self.scope,
            source=rows_of(self.program),
            build_strategy=self.build,
            keep=wanted,
        )


class ReplicatedRun(LocalRun):
    """The same by replicas that share each batch; `shared` is a run whose parameters it reads."""

    def __init__(
        self,
        program: FluidProgram,
        scope: FluidScope,
        replicas: int | None,
        build: BuildStrategy | None = None,
        how: ExecutionStrategy | None = None,
        shared: ReplicatedRun | None = None,
    ) -> None:
        super().__init__(program, scope, build)
        self._replicas, self._how, self._shared = replicas, how, shared

    def run(self, feed: Batch, fetch: Sequence[str], merged: bool = True) -> list[Any]:
        """The same; unless `merged`, each value is a list of those of the replicas."""
        executor = self.executor(fetch)
        values: list[Any] = executor.run(feed, fetch, roles=self._roles, return_merged=merged)
        return values

    def close(self) -> None:
        if self._executor is not None:
            self._executor.close()
        super().close()

    def _made(self, keep: frozenset[str]) -> Any:
        shared = None if self._shared is None else self._shared.executor()
        made = ParallelExecutor(
            self.program.graph,
            self.scope,
            self._replicas,
            self.build,
            self._how,
            share_vars_from=shared,
            source=rows_of(self.program),
            keep=sorted(keep) if _rewrites(self.build) else (),
        )
        if self._executor is not None:
            self._executor.close()
        return made


def sequential(program: FluidProgram, scope: FluidScope) -> Run:
    """What runs `program` over `scope` without replicas; the same one each time."""
    if program not in scope.runs:
        scope.runs[program] = LocalRun(program, scope)
    run: Run = scope.runs[program]
    return run


def initialise(startup: FluidProgram, scope: FluidScope) -> None:
    """Fill `scope` with the first values of every program noted in `startup`; state starts anew.

    A trainer of a cluster leaves tables out: their rows are on pservers.
    """
    for program in startup.initialises:
        for name, parameter in program.graph.parameters.items():
            on_pservers = program.job is not None and parameter.sparse
            if not parameter.distributed and not on_pservers:
                scope[name] = initial_values(parameter)
        scope.reset_state(program.graph)
        _forget(scope, program.graph)


def roles_of(graph: Graph) -> tuple[Role, ...]:
    """What a run of a program computes: all it holds."""
    held = {op.role for op in graph.ops}
    return tuple(role for role in ROLES if role in held)


def rows_of(program: FluidProgram) -> Any:
    """Where rows of tables that are in no scope come from; None if there is no such place."""
    if program.rows_from is None and program.origin.connection is not None:
        return program.origin.connection.executor
    return program.rows_from


def _forget(scope: FluidScope, graph: Graph) -> None:
    """Optimizer state of these parameters begins anew."""
    for owner, run in list(scope.runs.items()):
        if not graph.parameters.keys().isdisjoint(run.program.graph.parameters):
            run.close()
            del scope.runs[owner]


def _check_started(program: FluidProgram, scope: FluidScope) -> None:
    graph = program.graph
    away = rows_of(program) is not None
    needed = [
        p.name for p in graph.parameters.values() if not (p.distributed or (away and p.sparse))
    ]
    needed += [var.name for var in graph.vars.values() if var.kind == "state"]
    missing = [name for name in needed if name not in scope]
    if missing:
        raise ProgramError(
            f"{', '.join(missing[:3])} has no value yet, so the program cannot run.",
            hint="Run the startup program first: exe.run(fluid.default_startup_program()).",
        )


def _build_of(program: FluidProgram) -> BuildStrategy:
    if program.memory is None:
        return BuildStrategy()
    return BuildStrategy(memory_optimize=True, skip_grads=program.memory.skip_grads)


def _rewrites(build: BuildStrategy) -> bool:
    """Whether some var may be gone, or overwritten, when it is fetched."""
    return bool(
        build.memory_optimize
        or build.fuse_elewise_add_act_ops
        or build.fuse_all_optimizer_ops
        or build.fuse_embedding_pool_concat
        or build.fuse_loss_gradient
    )
