"""An executor whose parameters live on pservers: each `run` is one step of distributed training.

    with ConnectedExecutor(transpiler.get_trainer_program()) as executor:
        for feed in batches:
            (loss,) = executor.run(feed, [loss_var])

The first call connects, registers the tables and pulls the dense parameters into the scope. A step
pulls the rows its batch looks up, runs, hands the gradients to the communicator of the job's mode,
and puts the parameters that came back into the scope. `run_from` asks for the rows of the next
batch while the present one computes. `stop`, also by the end of the block, applies what is queued
and tells the pservers that this trainer has completed; they end once all trainers have.

Belongs to one thread. An error in a step closes the executor for good: pservers may have applied a
part of the step. They are told nothing, and take this trainer for lost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self

from psrt.communicator.base import Communicator
from psrt.core.clock import MonotonicClock
from psrt.core.counters import Counters
from psrt.core.errors import ProgramError
from psrt.core.types import F32, I64
from psrt.data.datasets import Records, Scattering
from psrt.executor.memory import Scope, lookups_by_table
from psrt.executor.parallel import EpochResult
from psrt.executor.ports import ParamSource
from psrt.executor.profiling import Profiler
from psrt.executor.program import DerivedIds, Feed, check_names, fed_vars
from psrt.executor.strategies import BuildStrategy, ExecutionStrategy
from psrt.graph.program import Var
from psrt.kernels import jit
from psrt.partition.transpiler import TrainerProgram
from psrt.rpc.dialing import Carrier
from psrt.trainer.inputs import (
    PREPARED_AHEAD,
    Ahead,
    PreparedBatch,
    checked,
    counted_tables,
    prepare,
)
from psrt.trainer.shuffle import Seat, exchange, total_of
from psrt.trainer.training.cluster import ConnectedCluster
from psrt.trainer.training.completion import CompletionWait, await_others, company
from psrt.trainer.training.lifetime import Lifetime
from psrt.trainer.training.loop import Stepping
from psrt.trainer.training.running import ProgramRunner, RunOptions
from psrt.trainer.training.shrinking import Shrunk

AT_ONCE_S = 1.0
"""How long `start` tries to reach pservers if it shall not wait for their ports."""

EXAMPLES_APART = 1 << 24
"""Between the examples of two trainers, as random ops count them: no mini-batch has as many."""


class ConnectedExecutor:
    """One trainer of a job; `part` is what the transpiler gives it.

    `replicas` copies of the program share each batch, and their gradients are averaged. `keep`
    names what is fetched if `build_strategy` asks for passes. `say` is told which pserver `start`
    waits for. `host` is where other trainers reach this one for a global shuffle.
    """

    def __init__(
        self,
        part: TrainerProgram,
        scope: Scope | None = None,
        *,
        carrier: Carrier = "stream",
        host: str = "127.0.0.1",
        connect_timeout_s: float = 120.0,
        call_timeout_s: float = 180.0,
        replicas: int = 1,
        build_strategy: BuildStrategy | None = None,
        exec_strategy: ExecutionStrategy | None = None,
        keep: Sequence[str | Var] = (),
        say: Callable[[str], None] = print,
    ) -> None:
        self.part, self.scope = part, Scope() if scope is None else scope
        self._carrier, self._host, self._say = carrier, host, say
        self._connect_timeout_s = connect_timeout_s if part.wait_port else AT_ONCE_S
        self._call_timeout_s = call_timeout_s
        first_example = part.trainer_id * EXAMPLES_APART
        how = RunOptions(replicas, build_strategy, exec_strategy, keep, first_example)
        self._running = ProgramRunner(part, self.scope, how)
        self._lookups = {table: ids for table, ids in lookups_by_table(part.program).items() if ids}
        self._fed, self._derived = fed_vars(part.program), DerivedIds(part.program, first_example)
        self._counted, self._program = counted_tables(part.program), part.program
        self._prepared = 0
        self._cluster: ConnectedCluster | None = None
        self._stepping: Stepping | None = None
        self._stopped = False
        self._life = Lifetime("executor", self._disconnect)

    # --- training ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Reach all pservers, register their tables, pull the dense parameters into the scope.

        Does nothing if that was done. Waits `connect_timeout_s` for pservers that are not up yet,
        or hardly at all if the job was transpiled with `wait_port` off.
        """
        self._connected()

    def run(
        self, feed: Feed, fetch: Sequence[str | Var] = (), return_merged: bool = True
    ) -> list[Any]:
        """One step on one batch; returns the vars in `fetch`, as `Executor.run` does.

        A fetched parameter is the one after the step. `return_merged` is as in `ParallelExecutor`.
        """
        communicator, batch = self._communicator(), self._prepare(feed)
        with self._life.failing_for_good():
            rows = communicator.pull_rows(batch.wanted)
            self._running.merged = return_merged
            fetched, _ = self._step(batch, rows, fetch)
        return fetched

    def run_from(
        self,
        batches: Iterable[Feed],
        fetch: Sequence[str | Var] = (),
        on_step: Callable[[list[Any]], None] | None = None,
    ) -> EpochResult:
        """Steps on `batches` until they end; `on_step` is given what each of them fetched.

        `batches` are taken, and their ids made distinct, by a thread in the background.
        """
        communicator, done = self._communicator(), EpochResult()
        self._running.merged = True
        ahead = Ahead(self._all_of(batches), PREPARED_AHEAD)
        with self._life.failing_for_good(), ahead:
            following = next(ahead, None)
            rows: Mapping[str, F32] = communicator.pull_rows(following.wanted) if following else {}
            while (batch := following) is not None:
                following = next(ahead, None)
                fetched, rows = self._step(batch, rows, fetch, following)
                done.count(batch.examples, fetched)
                if on_step is not None:
                    on_step(fetched)
        return done

    # --- parameters -------------------------------------------------------------------------------

    def pull(self) -> None:
        """The newest dense parameters into the scope, with all of this trainer's gradients."""
        self.flush()

    def flush(self, final: bool = False) -> None:
        """As `pull`; `final` says that this trainer has nothing more to hand over."""
        communicator = self._communicator()
        with self._life.failing_for_good():
            self._fill(communicator.flush(self._call_timeout_s, final))

    def pull_rows(self, wanted: Mapping[str, I64]) -> dict[str, F32]:
        """Rows (n, width) of the distinct ids (n,) of each table, now."""
        return self._communicator().pull_rows(wanted)

    @property
    def source(self) -> ParamSource:
        """Rows for another executor over the same scope, one that tests for instance."""
        return RowsOf(self)

    def rows(self, table: str) -> Iterator[tuple[I64, F32]]:
        """All rows of a sparse table that training has touched, from every pserver: pages of ids
        (n,) and rows (n, width)."""
        return self._connected().rows(table)

    def shrink(self, *tables: str, dry_run: bool = False) -> dict[str, Shrunk]:
        """Decay the shows and clicks of sparse tables, all if none is named, and drop the rows that
        are at their end; what that was, by table. See `psrt.tables.Lifecycle`.

        A dry run changes nothing and tells what would be dropped.
        """
        return self._connected().shrink(tables, dry_run)

    # --- the other trainers -----------------------------------------------------------------------

    def barrier(self, name: str = "", timeout_s: float | None = None) -> None:
        """Wait until every other trainer that has not completed has called it as often, by `name`.

        Between two steps; as long as a trainer waits here, no synchronous round closes.
        """
        timeout_s = self._call_timeout_s if timeout_s is None else timeout_s
        self._connected().meet(name, timeout_s)

    def exchange_records(self, scattering: Scattering, host: str = "") -> deque[Records]:
        """A global shuffle: `psrt.trainer.shuffle`. Between two steps, by every trainer.

        `host` replaces the one this executor was made with.
        """
        part = self.part
        seat = Seat(
            *(part.trainer_id, part.trainers, part.job_id),
            carrier=self._carrier,
            host=host or self._host,
            timeout_s=self._call_timeout_s,
        )
        cluster = self._connected()
        with self._life.failing_for_good():
            return exchange(scattering, seat, partial(cluster.tell, "shuffle"))

    def sum_records(self, count: int) -> int:
        """The sum of what this trainer and all others that have not completed give. Between two
        steps, by every trainer."""
        cluster = self._connected()
        with self._life.failing_for_good():
            return total_of(cluster.tell("records", str(count), self._call_timeout_s))

    def wait_for_others(self) -> None:
        """Wait until all other trainers have completed, without holding up their rounds; then the
        scope has what all of them learned. This trainer has nothing more to hand over."""
        cluster, part = self._connected(), self.part
        patience_s = self._call_timeout_s
        waiting = CompletionWait(part.trainer_id, patience_s, MonotonicClock(), self._say)
        self.flush(final=True)
        with self._life.failing_for_good():
            await_others(waiting, cluster.members, company(cluster.communicator, part.mode))
        self.flush(final=True)

    # --- the end ----------------------------------------------------------------------------------

    def stop(self, timeout_s: float | None = None) -> None:
        """Apply what is queued, put the last parameters into the scope, complete. Once is enough.

        A trainer that has not run connects first: the job of the others ends only with all of them.
        """
        if self._stopped:
            return
        communicator = self._communicator()
        with self._life.failing_for_good():
            timeout_s = self._call_timeout_s if timeout_s is None else timeout_s
            self._fill(communicator.stop(timeout_s))
        self._stopped = True
        why = "this trainer was stopped: it has told the pservers that it has completed."
        self._life.end(ProgramError(why, hint="Call stop after the last step."))

    def close(self) -> None:
        """Close the connections without a word: to pservers, a trainer that has not stopped is
        lost."""
        why = "the executor was closed."
        self._life.end(ProgramError(why, hint="Make a new one, for a new job."))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None and not self._life.is_over:
            self.stop()
        self.close()

    # --- what can be watched ----------------------------------------------------------------------

    @property
    def counters(self) -> Counters:
        """What the communicator counts."""
        return self._communicator().counters

    @property
    def profiler(self) -> Profiler | None:
        """Records ops, and calls to pservers, from now on; None stops the ops."""
        return self._running.executor.profiler

    @profiler.setter
    def profiler(self, profiler: Profiler | None) -> None:
        self._running.executor.profiler = profiler
        if profiler is not None:
            self._communicator().watch(profiler)

    # --- inside -----------------------------------------------------------------------------------

    def _communicator(self) -> Communicator:
        return self._connected().communicator

    def _connected(self) -> ConnectedCluster:
        """The cluster, reached if it was not yet; raises after the end."""
        self._life.check()
        if self._cluster is None:
            with self._life.failing_for_good():
                self._cluster = self._connect()
        return self._cluster

    def _connect(self) -> ConnectedCluster:
        groups = ("trainer", "pserver") if self._running.own else ("trainer",)
        jit.warm_up(groups)  # a step, which others may wait for, must not wait for a compiler
        cluster = ConnectedCluster(
            self.part,
            carrier=self._carrier,
            call_timeout_s=self._call_timeout_s,
            say=self._say if self.part.wait_port else _say_nothing,
            own=self._running.own,
        )
        try:
            self._fill(cluster.communicator.start(self._connect_timeout_s))
        except BaseException:
            cluster.close()
            raise
        self._stepping = Stepping(self._running, self.scope, cluster.communicator)
        return cluster

    def _disconnect(self) -> None:
        if self._cluster is not None:
            self._cluster.close()
        self._running.close()

    def _all_of(self, batches: Iterable[Feed]) -> Generator[PreparedBatch, None, None]:
        for feed in batches:
            yield self._prepare(feed)

    def _prepare(self, feed: Feed) -> PreparedBatch:
        fed = self._derived.extend(feed, self._prepared)
        check_names(fed, self._fed)
        self._prepared += 1
        batch = prepare(dict(fed), self._lookups, counted=self._counted)
        return checked(self._program, batch)

    def _step(
        self,
        batch: PreparedBatch,
        rows: Mapping[str, F32],
        fetch: Sequence[str | Var],
        following: PreparedBatch | None = None,
    ) -> tuple[list[Any], Mapping[str, F32]]:
        assert self._stepping is not None
        names = [var if isinstance(var, str) else var.name for var in fetch]
        fetched, rows = self._stepping.step(batch, rows, names, following)
        return self._running.newest(names, fetched), rows

    def _fill(self, dense: Mapping[str, F32]) -> None:
        for name, values in dense.items():
            self.scope[name] = values


def _say_nothing(line: str) -> None:
    pass


class RowsOf:
    """The `ParamSource` of what a trainer trains."""

    def __init__(self, trained: ConnectedExecutor) -> None:
        self._trained = trained

    def pull_rows(self, table: str, ids: I64) -> F32:
        return self._trained.pull_rows({table: ids})[table]
