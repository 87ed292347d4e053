"""An executor whose parameters live on pservers: each `run` is one step of distributed training.

    with ConnectedExecutor(transpiler.get_trainer_program()) as executor:
        for feed in batches:
            (loss,) = executor.run(feed, [loss_var])

The first call connects, registers the tables and pulls the dense parameters into the scope. Steps
are those of `TrainingRun`. In Sync and HalfAsync `run` keeps the gradients of sparse programs until
the next `run`, whose rows then come in the same call; reading the scope sends them first.
`run_from` pulls the rows of the next batch while the present one computes. `stop`, also at the end
of the block, applies what is queued and reports to the pservers that this trainer has completed;
they end once all trainers have.

Belongs to one thread. An error in a step closes the executor for good: pservers may have applied a
part of the step. They receive no report and count this trainer as lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

from psrt.core.clock import MonotonicClock
from psrt.core.counters import Counters
from psrt.core.errors import ProgramError
from psrt.core.specs import Geo, Sync
from psrt.core.types import F32, I64
from psrt.executor.memory import Scope
from psrt.executor.parallel import EpochResult
from psrt.executor.ports import ParamSource
from psrt.executor.profiling import Profiler
from psrt.executor.program import Feed, Merged
from psrt.executor.strategies import BuildStrategy, ExecutionStrategy
from psrt.graph.program import Var
from psrt.partition.transpiler import TrainerProgram
from psrt.rpc.dialing import Carrier
from psrt.trainer.cuts import ExecutorCuts
from psrt.trainer.inputs import PREPARED_AHEAD, Ahead, BatchPreparer, PreparedBatch
from psrt.trainer.training.cluster import AnyCluster, cluster_of_part
from psrt.trainer.training.completion import CompletionWait, await_others, waiting_turn
from psrt.trainer.training.connected_calls import ConnectedCalls
from psrt.trainer.training.lifetime import Lifetime
from psrt.trainer.training.run_options import RunOptions
from psrt.trainer.training.training_run import TrainingRun
from psrt.trainer.training.watched_scripts import watch_script

AT_ONCE_S = 1.0
"""Time for `start` to reach pservers where it does not wait for their ports."""

EXAMPLES_APART = 1 << 24
"""Distance between the example numbers of two trainers, for random ops: above any mini-batch."""


class ConnectedExecutor(ConnectedCalls):
    """One trainer of a job; `part` is what the transpiler gives it.

    `replicas` copies of the program share each batch, and their gradients are averaged. `keep`
    names what is fetched if `build_strategy` asks for passes. `say` prints the pserver that `start`
    waits for. `host` is the address of this trainer for a global shuffle. `cuts` has
    where it goes on, for cuts.
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
        options = RunOptions(
            replicas=replicas,
            build=build_strategy,
            execution=exec_strategy,
            keep=keep,
            first_example=first_example,
            updates_here=isinstance(part.mode, Geo),
        )
        self._run = TrainingRun(part.program, self.scope, options)
        self._preparer = BatchPreparer(part.program, first_example)
        self.cuts = ExecutorCuts(part.program, self.scope)
        self._cluster: AnyCluster | None = None
        self._stopped = False
        self._life = Lifetime("executor", self._disconnect)

    def start(self) -> None:
        """Reach all pservers, register their tables, pull the dense parameters into the scope.

        Does nothing if that was done. Waits `connect_timeout_s` for pservers that are not up yet,
        or hardly at all if the job was transpiled with `wait_port` off.
        """
        self._connected()

    def run(
        self, feed: Feed, fetch: Sequence[str | Var] = (), return_merged: Merged = True
    ) -> list[Any]:
        """Train on one batch; return the vars in `fetch`, as `Executor.run` does.

        A fetched parameter is the one after the step. `return_merged` is as in `ParallelExecutor`.
        """
        self._connected()
        batch = self._preparer.prepare(feed)
        with self._life.failing_for_good(), self._run.spans.timed_step():
            names = names_of(fetch)
            position = self.cuts.position_after if self._makes_cuts else None
            return self._run.step(
                batch, names, merged=return_merged, may_hold=True, position=position
            )

    def run_from(
        self,
        batches: Iterable[Feed],
        fetch: Sequence[str | Var] = (),
        on_step: Callable[[list[Any]], None] | None = None,
        first: int = 0,
    ) -> EpochResult:
        """Train on `batches` until they end; `on_step` is called with the fetches of each.

        A thread in the background takes `batches` and makes their ids distinct. `first` is the
        number of batches of this pass that came before a restart, for cuts.
        """
        self._settled()
        done = EpochResult()
        self.cuts.begin_pass(first)

        def count(batch: PreparedBatch, following: PreparedBatch | None, found: list[Any]) -> None:
            done.count(batch.examples, found)
            if on_step is not None:
                on_step(found)

        prepared = (self._preparer.prepare(feed) for feed in batches)
        with self._life.failing_for_good(), Ahead(prepared, PREPARED_AHEAD) as ahead:
            position = self.cuts.position_in_pass if self._makes_cuts else None
            self._run.run_from(ahead, names_of(fetch), count, position=position)
        self.cuts.end_pass()
        return done

    def pull(self) -> None:
        """Write the newest dense parameters to the scope, with all of this trainer's gradients."""
        self.flush()

    def flush(self, final: bool = False) -> None:
        """Pull; `final` declares that this trainer pushes nothing more."""
        self._settled()
        with self._life.failing_for_good():
            self._run.flush(self._call_timeout_s, final)

    def pull_rows(self, wanted: Mapping[str, I64]) -> dict[str, F32]:
        """Return rows (n, width) of the distinct ids (n,) of each table, now."""
        self._settled()
        return dict(self._run.pull_rows(wanted))

    @property
    def source(self) -> ParamSource:
        """The source of rows for another executor over the same scope."""
        return self

    def checkpoint(self, timeout_s: float = 600.0) -> int:
        """Make a cut of the whole job now; returns its number once it is complete.

        Call it between two steps. In Sync this trainer meanwhile joins rounds without gradients, so
        all trainers call it at one step; otherwise the rounds up to the cut have no share of it.
        Raises `ConfigError` if the pservers write no cuts, `JobError` if the cut is given up:
        training may go on then.
        """
        cluster = self._settled()
        round = self._join_round if isinstance(self.part.mode, Sync) else None
        return self.cuts.make(cluster.communicator, round, timeout_s)

    def wait_for_others(self) -> None:
        """Wait until all other trainers have completed, joining their rounds with no gradients.

        The scope then has what all of them learned. This trainer pushes nothing more.
        """
        cluster, part = self._settled(), self.part
        me, patience_s, policy = part.trainer_id, self._call_timeout_s, part.mode.on_trainer_loss
        waiting = CompletionWait(me, patience_s, policy, MonotonicClock(), self._say)
        self.flush(final=True)
        with self._life.failing_for_good():
            cluster.communicator.declare_trained()
            await_others(waiting, cluster.members, waiting_turn(cluster.communicator, part.mode))
            cluster.communicator.is_alone()
        self.flush(final=True)

    def stop(self, timeout_s: float | None = None) -> None:
        """Apply what is queued, write the last parameters to the scope, complete; idempotent.

        A trainer that has not run connects first: a job ends only when all trainers have completed.
        """
        if self._stopped:
            return
        self._connected()
        with self._life.failing_for_good():
            if self._makes_cuts and self._cluster is not None:
                self._run.settle()
                self._cluster.communicator.declare_trained()
            self._run.stop(self._call_timeout_s if timeout_s is None else timeout_s)
        self._stopped = True
        why = "this trainer was stopped: it has reported to the pservers that it completed."
        self._life.end(ProgramError(why, hint="Call stop after the last step."))

    def close(self) -> None:
        """Close the connections; pservers count a trainer that has not stopped as lost."""
        why = "the executor was closed."
        self._life.end(ProgramError(why, hint="Make a new one, for a new job."))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None and not self._life.is_over:
            self.stop()
        self.close()

    @property
    def counters(self) -> Counters:
        """The counters of the communicator."""
        return self._connected().communicator.counters

    @property
    def profiler(self) -> Profiler | None:
        """Records ops, and calls to pservers, from now on; None stops that."""
        return self._run.profiler

    @profiler.setter
    def profiler(self, profiler: Profiler | None) -> None:
        if profiler is not None:
            self._connected()
        self._run.profiler = profiler

    @property
    def _makes_cuts(self) -> bool:
        return self._connected().communicator.makes_cuts

    def _join_round(self) -> None:
        with self._life.failing_for_good():
            self._run.join_round()

    def _settled(self) -> AnyCluster:
        """The cluster, with the exchange of the last step finished."""
        cluster = self._connected()
        with self._life.failing_for_good():
            self._run.settle()
        return cluster

    def _connected(self) -> AnyCluster:
        """The cluster, reached if it was not yet; raises after the end."""
        self._life.check()
        if self._cluster is None:
            with self._life.failing_for_good():
                self._cluster = self._connect()
        return self._cluster

    def _connect(self) -> AnyCluster:
        say = self._say if self.part.wait_port else _ignore
        cluster = cluster_of_part(
            self.part,
            self._run,
            carrier=self._carrier,
            connect_timeout_s=self._connect_timeout_s,
            call_timeout_s=self._call_timeout_s,
            say=say,
        )
        cluster.communicator.begins_at(self.cuts.begin)
        watch_script(self.part, self._run, cluster.communicator)
        try:
            self._run.open(cluster.communicator, self._connect_timeout_s)
            if (report := cluster.communicator.resumed.report) and self.part.trainer_id == 0:
                say(report)
            self._run.executor.begin_at(self.cuts.steps)
            self._preparer.begin_at(self.cuts.steps)
        except BaseException:
            cluster.close()
            raise
        return cluster

    def _disconnect(self) -> None:
        if self._cluster is not None:
            self._cluster.close()
        self._run.close()


def names_of(fetch: Sequence[str | Var]) -> list[str]:
    return [var if isinstance(var, str) else var.name for var in fetch]


def _ignore(line: str) -> None:
    pass
