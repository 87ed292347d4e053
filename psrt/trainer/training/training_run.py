"""The one training runtime: a program over a scope, and the communicator of its gradients.

A step on batch k, whose rows came with the step before:

    begin(ids of k + 1)       asynchronous modes start to pull those rows
    run                       forward and backward; in Geo and without pservers, updates
    offer(gradient)           each gradient as soon as it is final; asynchronous modes send it
    finish(gradients)         synchronous modes: push, round and pull in one exchange
    write into the scope      dense parameters that came back

The trainer command, `ConnectedExecutor` and the Fluid front-end are shells over it; training
without pservers differs by its communicator alone. Belongs to one thread, except `offer`.

A caller that learns of batch k + 1 only at the next step may allow the run to hold the gradients of
batch k until then: the exchange then also asks for the rows of k + 1, and a step costs one round
trip instead of two. Everything that reads parameters finishes the exchange first: `flush`, a fetch
of a parameter, `pull_rows`, and the scope itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, TypeAlias

from psrt.communicator.base import Communicator, Gradient, Gradients, Position
from psrt.core.errors import InternalError
from psrt.core.specs import CommunicationMode, Geo
from psrt.core.tracing import first_traced, traced
from psrt.core.types import F32, I64
from psrt.executor.memory import Scope
from psrt.executor.parallel import PASSES, ParallelExecutor
from psrt.executor.profiling import Category, Profiler
from psrt.executor.program import Merged, first_not_finite
from psrt.graph.program import Program, Role
from psrt.trainer.inputs import PreparedBatch, bind, with_counts
from psrt.trainer.observing import SpanRecorders
from psrt.trainer.training.local_parameters import LocalDenseParameters, fill_untrained, updated_by
from psrt.trainer.training.run_options import ComputedRates, RunOptions, computed

WITH_UPDATES: tuple[Role, ...] = ("forward", "backward", "optimize")

OnStep: TypeAlias = Callable[[PreparedBatch, PreparedBatch | None, list[Any]], None]
"""Called after a step with its batch, the batch that follows (None at the end), and the fetches."""


PositionAfter: TypeAlias = Callable[[PreparedBatch, PreparedBatch | None, list[Any]], Position]
"""Returns the position after a step from its batch, the batch that follows, and the fetches."""


class TrainingRun:
    """One trainer's training: `open`, then `step` or `run_from`, then `close`.

    Frozen parameters and counters of metrics get their first values in `scope`, unless it has them;
    `profiler` records named stops of a step and, while it is set, ops and calls to pservers;
    `spans` has it, and what else records the stops and calls. `steps` and `examples` were trained.
    """

    def __init__(self, program: Program, scope: Scope, options: RunOptions) -> None:
        self.program, self.scope, self.options = program, scope, options
        self._roles = WITH_UPDATES if options.updates_here else PASSES
        self._updated_here = updated_by(program) if options.updates_here else frozenset[str]()
        leaves = any(p.name not in self._updated_here for p in program.trained())
        self.executor = options.executor(program, scope, self if leaves else None)
        self._rates = ComputedRates(program)
        self._communicator: Communicator | None = None
        self._gradients: Gradients = {}
        self._held: Gradients | None = None
        self._batch: PreparedBatch | None = None
        self._expected: PreparedBatch | None = None
        self._rows: Mapping[str, F32] = {}
        self.spans, self.steps, self.examples = SpanRecorders(), 0, 0
        self._waiting: Category = "communicate"
        fill_untrained(scope, program)

    # --- open and close ---------------------------------------------------------------------------

    def open(
        self, communicator: Communicator, timeout_s: float, waiting: Category = "communicate"
    ) -> None:
        """Reach the pservers and write their dense parameters into the scope.

        `waiting` is the category of exchanges in a profile.
        """
        self._fill(communicator.start(timeout_s))
        self._communicator, self._waiting = communicator, waiting
        communicator.watch(self.spans.or_none())

    def stop(self, timeout_s: float) -> None:
        """Apply everything queued, write the last parameters, report completion."""
        self.settle()
        self._fill(self.communicator.stop(timeout_s))

    def close(self) -> None:
        """End the threads of replicas and drop held gradients; the caller closes the cluster."""
        self._drop_held()
        if isinstance(self.executor, ParallelExecutor):
            self.executor.close()

    def local_parameters(self, mode: CommunicationMode) -> LocalDenseParameters | None:
        """The parameters that this trainer trains itself, for the communicator of Geo."""
        if not isinstance(mode, Geo):
            return None
        return LocalDenseParameters(self.program, self.scope, self.executor)

    @property
    def communicator(self) -> Communicator:
        if self._communicator is None:
            raise InternalError("a training run was used before it was opened")
        return self._communicator

    @property
    def profiler(self) -> Profiler | None:
        return self.spans.profiler

    @profiler.setter
    def profiler(self, profiler: Profiler | None) -> None:
        self.spans.profiler = self.executor.profiler = profiler
        if self._communicator is not None:
            self._communicator.watch(self.spans.or_none())

    # --- steps ------------------------------------------------------------------------------------

    def run_from(
        self,
        batches: Iterator[PreparedBatch],
        fetch: Sequence[str],
        on_step: OnStep,
        on_start: Callable[[], None] = lambda: None,
        stop: threading.Event | None = None,
        position: PositionAfter | None = None,
    ) -> None:
        """Step on `batches` until they end, or until the step during which `stop` was set.

        `on_start` is called once the first batch and its rows have arrived. `position` is called
        before the gradients of a step leave: a cut that contains the step has what it returns.
        """
        batch = self._next_of(batches)
        if batch is None:
            return
        self._expected, self._rows = batch, self._pull(batch)
        on_start()
        while batch is not None and not (stop is not None and stop.is_set()):
            with self._span("step", "step"):
                following = self._next_of(batches)
                after = None if position is None else partial(position, batch, following)
                found = self.step(batch, fetch, following, position=after)
                on_step(batch, following, found)
            batch = following

    @first_traced("step")
    def step(
        self,
        batch: PreparedBatch,
        fetch: Sequence[str] = (),
        following: PreparedBatch | None = None,
        *,
        merged: Merged = True,
        may_hold: bool = False,
        position: Callable[[list[Any]], Position] | None = None,
    ) -> list[Any]:
        """Train on one batch; return the vars in `fetch`, parameters as they are after the step.

        `following` is the batch that the next step is to train on. Without `merged` a value is a
        list with that of each replica. `may_hold` allows gradients to wait for the next step.
        `position(fetches)` is where the trainer goes on after it.
        """
        rows = self._rows_for(batch)
        if following is not None:
            with self._span("prefetch", self._waiting):
                self.communicator.begin(following.wanted)
        fetched = self._run(batch, fetch, rows, merged)
        if position is not None:
            self.communicator.continues_at(position(fetched))
        gradients, self._gradients = self._gradients, {}
        self.steps, self.examples = self.steps + 1, self.examples + batch.examples
        if may_hold and batch.wanted and self.communicator.one_call_step:
            self._hold(gradients)
        else:
            self._expected, self._rows = following, self._exchange(gradients)
        return self._with_newest_parameters(fetch, fetched)

    def join_round(self) -> None:
        """Close a round of Sync without a share in its average."""
        self._exchange({})

    def settle(self) -> None:
        """Finish the exchange of the last step, if its gradients are held."""
        if self._held is not None:
            self._exchange(self._drop_held())

    def flush(self, timeout_s: float, final: bool = False) -> None:
        """Wait until this trainer's gradients are applied; write the newest parameters."""
        self.settle()
        self._fill(self.communicator.flush(timeout_s, final))

    def pull_rows(self, wanted: Mapping[str, I64]) -> Mapping[str, F32]:
        """Return rows (n, width) of the distinct ids (n,) of each table, now: a `ParamSource`."""
        self.settle()
        return self.communicator.pull_rows(wanted)

    # --- the exit of gradients: GradSink ----------------------------------------------------------

    def offer(self, name: str, gradient: Gradient) -> None:
        """Pass a final gradient of the running step on; see `GradSink.offer`."""
        if self.options.numerics.skips or self._rates.vars:
            return  # `push` has all of them, once the step is known to count, and its rates
        self.communicator.offer(name, self._counted(name, gradient))

    @traced("sink")
    def push(self, gradients: Gradients) -> None:
        """Keep the gradients of the running step that the program itself does not apply."""
        self._gradients = {
            name: self._counted(name, gradient)
            for name, gradient in gradients.items()
            if name not in self._updated_here
        }

    # --- inside -----------------------------------------------------------------------------------

    def _span(self, name: str, category: Category) -> AbstractContextManager[None]:
        return self.spans.span(name, category)

    def _next_of(self, batches: Iterator[PreparedBatch]) -> PreparedBatch | None:
        with self._span("feed", "data"):
            return next(batches, None)

    def _rows_for(self, batch: PreparedBatch) -> Mapping[str, F32]:
        """The rows of a batch: those that came with the last exchange, or pulled now."""
        if self._held is not None:
            self.communicator.begin(batch.wanted)
            return self._exchange(self._drop_held())
        if self._expected is batch:
            self._expected = None
            return self._rows
        return self._pull(batch)

    def _pull(self, batch: PreparedBatch) -> Mapping[str, F32]:
        with self._span("pull", self._waiting):
            return self.communicator.pull_rows(batch.wanted)

    @traced("run")
    def _run(
        self, batch: PreparedBatch, fetch: Sequence[str], rows: Mapping[str, F32], merged: Merged
    ) -> list[Any]:
        self._batch = batch
        bound, whole = bind(batch, rows), [*fetch, *self._rates.vars]
        found = self.options.numerics.guarded(
            lambda: computed(self.executor, batch.feed, whole, bound, self._roles, merged),
            lambda: first_not_finite(self.program, self.scope, batch.feed, bound),
        )
        return self._rates.sent(self._communicator, found, len(fetch))

    def _exchange(self, gradients: Gradients) -> Mapping[str, F32]:
        """Push gradients, write the parameters that came back, return the rows that did."""
        with self._span("push-pull", self._waiting):
            pulled = self.communicator.finish(gradients)
        self._fill(pulled.dense)
        return pulled.rows

    def _hold(self, gradients: Gradients) -> None:
        if self.scope.before_read is not None:
            self.scope.before_read()  # another run over the same scope holds gradients, too
        self._held, self._expected = gradients, None
        self.scope.before_read = self.settle

    def _drop_held(self) -> Gradients:
        held, self._held = self._held or {}, None
        if self.scope.before_read == self.settle:
            self.scope.before_read = None
        return held

    def _with_newest_parameters(self, fetch: Sequence[str], fetched: list[Any]) -> list[Any]:
        known = self.program.parameters
        return [  # of none if nothing was asked for, or the step was left out
            self.scope[name].copy() if name in known else value
            for name, value in zip(fetch, fetched, strict=False)
        ]

    def _counted(self, name: str, gradient: Gradient) -> Gradient:
        """The gradient with the shows and clicks of its ids, if its table counts them."""
        batch = self._batch
        if batch is None or name not in batch.counts:
            return gradient
        return with_counts(gradient, batch.wanted[name], batch.counts[name])

    @traced("scope")
    def _fill(self, dense: Mapping[str, F32]) -> None:
        for name, values in dense.items():
            self.scope[name] = values
