"""The parallel executor: a dependency graph built once, replicas of the program, a thread pool.

An op starts as soon as its inputs are ready, in whichever replica; where every thread has replicas
of its own, once the thread of its replica reaches it. Each replica takes a near-equal share of a
batch. Results do not depend on threads or timing: gradients are added in the order of replicas.
An executor is used from one thread and owns its pool. The first error wins: it names op, layer and
the user's line, nothing new starts after it, and `run` raises it once running ops have ended; with
`enable_backward_optimizer_op_deps` no update has happened by then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from psrt.config.load import cpu_num
from psrt.core.errors import ConfigError
from psrt.executor.memory import RowBatch, RowSupply, Scope
from psrt.executor.parallel.epoch import EpochResult
from psrt.executor.parallel.hogwild import BatchSource, hogwild_workers, run_hogwild
from psrt.executor.parallel.loss_gradient import LossGradient
from psrt.executor.parallel.plan import Planner
from psrt.executor.parallel.pool import Pool
from psrt.executor.parallel.replicas import ParameterCopies, make_replicas
from psrt.executor.parallel.shares import BatchShare, examples_of, shares
from psrt.executor.parallel.zero_copy import ZeroCopyTable
from psrt.executor.ports import Gradient, GradSink, ParamSource
from psrt.executor.profiling import Profiler, span_of
from psrt.executor.program import (
    NO_CHECKS,
    DeprecatedNames,
    DerivedIds,
    Feed,
    Fetch,
    Fetches,
    FiniteChecks,
    Merged,
    UpdateStates,
    among,
    copy_of,
    fed_vars,
    prepare,
)
from psrt.executor.strategies import BuildStrategy, ExecutionStrategy, ReduceStrategy
from psrt.graph.program import Program, Role, Var


class ParallelExecutor(DeprecatedNames):
    """Runs `replicas` copies of one program over one scope; by default CPU_NUM of them.

    `share_vars_from` is the parallel executor of the program that trains: this one, usually of
    `clone(program, for_test=True)`, reads its parameters and takes its number of replicas.
    The other arguments are those of `Executor`.
    """

    def __init__(
        self,
        program: Program,
        scope: Scope | None = None,
        replicas: int | None = None,
        build_strategy: BuildStrategy | None = None,
        exec_strategy: ExecutionStrategy | None = None,
        share_vars_from: ParallelExecutor | None = None,
        source: ParamSource | None = None,
        sink: GradSink | None = None,
        dtype: str = "float32",
        keep: Sequence[str | Var] = (),
        first_example: int = 0,
        checks: FiniteChecks = NO_CHECKS,
    ) -> None:
        self._build = build_strategy or BuildStrategy()
        self._exec = exec_strategy or ExecutionStrategy()
        self._build.freeze()
        self._exec.freeze()
        self.program, self.source = program, source
        self._copies = _copies(program, scope, replicas, share_vars_from)
        threads = self._exec.num_threads or len(self._copies.scopes)
        count, is_hogwild = len(self._copies.scopes), self._build.async_mode
        prepared = prepare(program, self._build, keep, are_short_of_work=count % threads > 0)
        self.scope = self._copies.scopes[0]
        one_copy = is_hogwild or self._build.reduce_strategy is ReduceStrategy.Reduce
        updating = 1 if one_copy and not is_hogwild else count
        self._replicas = make_replicas(prepared, dtype, count, updating, checks)
        self._planner = Planner(prepared, self._replicas, one_copy, self._build, threads, sink)
        self._fetches, self._fed = Fetches(program, prepared), fed_vars(program)
        self._loss_gradient = LossGradient.of(self._build.gradient_scale_strategy, program)
        self._first_example, self._derived = first_example, DerivedIds(program, first_example)
        self._supply = supply = RowSupply(program, self.scope, source)
        self._zero_copy = {
            name: ZeroCopyTable(name, names, self._replicas)
            for name, names in supply.lookups.items()
            if supply.may_read_in_place(name)
        }
        self._pool = Pool(threads, self._exec.spin_s)
        self._one_copy, self._runs, self._steps = one_copy, 0, 0
        self.profiler: Profiler | None = None

    def run(
        self,
        feed: Feed,
        fetch: Fetch = (),
        rows: Mapping[str, RowBatch] | None = None,
        roles: Sequence[Role] = ("forward", "backward"),
        return_merged: Merged = True,
    ) -> list[Any]:
        """Run one batch, see `Executor.run`.

        With `return_merged=False` each var is a list with one value for every replica that had
        examples; otherwise, or if `return_merged` has its name, one value, see `Fetches.merged`.
        """
        names = self._fetches.names_of(fetch, roles)
        merged = among(names, return_merged)
        with span_of(self.profiler, "run", "step"):
            for _ in range(self._exec.num_iteration_per_run):
                cut = self._step(feed, rows or {}, roles, merged)
                if self.sink is not None and "backward" in roles:
                    self.sink.push(self.gradients())
            fetched = [self._fetched(name, cut, name in merged) for name in names]
            self._drop_periodically()
        return fetched

    def run_from(
        self,
        batches: Iterable[Feed],
        fetch: Fetch = (),
        roles: Sequence[Role] = ("forward", "backward"),
    ) -> EpochResult:
        """Run batches until the iterable ends.

        With `async_mode` replicas take whole batches and do not wait for each other, see
        `psrt.executor.parallel.hogwild`; `source` and `sink` are then called from several threads.
        """
        names = self._fetches.names_of(fetch, roles)
        if self._build.async_mode:
            return self._run_hogwild(BatchSource(batches, self._steps), names, roles)
        done = EpochResult()
        for feed in batches:
            done.count(examples_of(feed, self._fed), self.run(feed, names, roles=roles))
        return done

    @property
    def sink(self) -> GradSink | None:
        """The exit of gradients; None keeps them here."""
        return self._planner.sink

    @sink.setter
    def sink(self, sink: GradSink | None) -> None:
        self._planner.use_sink(sink)

    def continue_from(self, other: ParallelExecutor) -> None:
        """`Executor.continue_from`, with an executor of equally many replicas."""
        for replica, before in zip(self._replicas, other._replicas, strict=True):
            replica.share_updates(before)
        self._steps = other._steps

    def begin_at(self, step: int) -> None:
        """See `Executor.begin_at`."""
        self._steps = step

    def gradients(self) -> dict[str, Gradient]:
        """Gradients of the whole batch, see `Executor.gradients`."""
        return self._replicas[0].compiled.gradients()

    def parameters_changed(self, other_steps: int) -> None:
        """`Executor.parameters_changed`; replicas with copies of parameters copy them again."""
        self._copies.forget()
        for replica in self._replicas:
            replica.compiled.count_others(other_steps)

    @property
    def update_states(self) -> UpdateStates:
        """See `Executor.update_states`."""
        return UpdateStates([replica.compiled for replica in self._replicas])

    def memory_bytes(self) -> int:
        """Bytes of the values of a step in all replicas, without parameters and data."""
        return sum(replica.compiled.memory_bytes() for replica in self._replicas)

    def close(self) -> None:
        """End the threads of the pool; the executor can no longer run."""
        self._pool.close()

    def __enter__(self) -> ParallelExecutor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run_hogwild(
        self, source: BatchSource, names: Sequence[str], roles: Sequence[Role]
    ) -> EpochResult:
        for replica in self._replicas:
            replica.compiled.profiler = self.profiler
        shared = self.program, self.scope, self.source, self.sink, self._first_example
        workers = hogwild_workers(self._replicas, *shared)
        try:
            return run_hogwild(workers, self._pool, source, names, roles)
        finally:
            self._steps = source.next_number

    # --- one step ---------------------------------------------------------------------------------

    def _step(
        self, feed: Feed, rows: Mapping[str, RowBatch], roles: Sequence[Role], merged: Sequence[str]
    ) -> list[BatchShare]:
        """Split the batch over the replicas and walk the graph; `merged` vars are fetched later."""
        self._supply.check_bound(rows)
        cut = shares(examples_of(feed, self._fed), len(self._replicas))
        active = [share for share in cut if not share.is_empty]
        if len(active) > 1:
            self._fetches.check_mergeable(merged)
        scopes = self._scopes(roles)
        self._prepare_replicas(roles, scopes)
        zero_copy = [t for n, t in self._zero_copy.items() if n not in rows and t.fits(scopes)]
        self._load(feed, rows, cut, scopes, zero_copy)
        graph = self._planner.graph(active, roles, zero_copy)
        try:
            self._pool.walk(graph, self._replicas, self.profiler)
            self._planner.finish(active, roles)
        finally:
            self._steps += 1
        return active

    def _prepare_replicas(self, roles: Sequence[Role], scopes: Sequence[Scope]) -> None:
        for replica, scope in zip(self._replicas, scopes, strict=True):
            replica.bind_scope(scope, roles, replica is self._replicas[0])
            replica.compiled.context.step = self._steps
            if "backward" in roles and "optimize" not in roles:
                replica.compiled.swap_gradients()

    def _scopes(self, roles: Sequence[Role]) -> Sequence[Scope]:
        """Scope of each replica. Without updates all read one: copies might be outdated."""
        if self._one_copy or "optimize" not in roles:
            return [self.scope] * len(self._replicas)
        self._copies.refresh()
        return self._copies.scopes

    def _load(
        self,
        feed: Feed,
        rows: Mapping[str, RowBatch],
        cut: Sequence[BatchShare],
        scopes: Sequence[Scope],
        zero_copy: Sequence[ZeroCopyTable],
    ) -> None:
        """Load a share of the batch into each replica; fetch rows of sparse tables once for all."""
        loss_gradient = self._loss_gradient.fed_by(feed)
        extended = self._derived.extend(loss_gradient.without(feed), self._steps)
        feed = self._replicas[0].checked(extended, sum(not s.is_empty for s in cut))
        left = [name for name in self._supply.tables if name not in {t.name for t in zero_copy}]
        fetched = {name: rows.get(name) or self._supply.batch(name, feed) for name in left}
        for replica, share, scope in zip(self._replicas, cut, scopes, strict=True):
            replica.load(share, feed, fetched, scope)
            replica.compiled.context.first_example = self._first_example + share.start
            replica.compiled.context.loss_gradient = loss_gradient.for_share(share)
        for table in zero_copy:
            table.load()

    def _fetched(self, name: str, cut: Sequence[BatchShare], merge: bool) -> Any:
        if self.program.vars[name].kind == "parameter":
            return self.scope[name].copy()
        active = [self._replicas[share.number] for share in cut]
        parts = [copy_of(replica.compiled.cells[name]) for replica in active]
        return self._fetches.merged(name, parts, [s.weight for s in cut]) if merge else parts

    def drop_memory(self) -> None:
        """Release the memory of temporary vars; the next run makes it anew."""
        for replica in self._replicas:
            replica.compiled.drop_memory()

    def _drop_periodically(self) -> None:
        self._runs += 1
        every = self._exec.num_iteration_per_drop_scope
        if every and self._runs % every == 0:
            self.drop_memory()


def _copies(
    program: Program, scope: Scope | None, asked: int | None, shared: ParallelExecutor | None
) -> ParameterCopies:
    """Scopes of a new executor: the user's and empty copies of it, or those of another executor."""
    if isinstance(shared, ParallelExecutor):
        return shared._copies
    if shared is not None:
        raise ConfigError(
            f"share_vars_from is of type {type(shared).__name__}, not a ParallelExecutor.",
            hint="To share parameters with any other executor, give both the same scope.",
        )
    replicas = cpu_num() if asked is None else asked
    if not isinstance(replicas, int | np.integer) or replicas < 1:
        raise ConfigError(
            f"A parallel executor got replicas={replicas!r}.",
            hint="Give one replica or more; the default is CPU_NUM.",
        )
    return ParameterCopies(program, Scope() if scope is None else scope, replicas)
