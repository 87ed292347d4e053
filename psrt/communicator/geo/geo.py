"""Geo: every trainer trains by itself, and they exchange changes every few steps.

Optimizers run on the trainer, on whole dense parameters in its scope and on its own `GeoTable`s.
After every `update_frequency` steps, with T the number of trainers:

    training thread, between two steps     geo threads, while the next steps compute
      delta = (train − old) / T
      old += delta                    ───▶  PUSH delta (a pserver: p += delta), and in the same call
                                            pull p: all dense blocks, the rows that others changed
      train += p − old; old = p       ◀───  at the end of the first step after the answer

Only the training thread touches parameters, so there is nothing to lock. Each push leaves the part
1 − 1/T of the progress on the trainer; later pushes carry it, and `flush` pushes all of it.
So in the long run a pserver's parameters move by the sum of all trainers' changes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from psrt.communicator.base import Gradient, Gradients, Pulled
from psrt.communicator.base_communicator import BaseCommunicator, time_left
from psrt.communicator.geo.cut_turns import CutTurns
from psrt.communicator.geo.geo_agreement import Agreement, Given
from psrt.communicator.geo.geo_state import Counts, RestoredState
from psrt.communicator.geo.local_parameters import LocalParameters
from psrt.communicator.geo.sync_schedule import SyncSchedule
from psrt.communicator.members import Patience
from psrt.communicator.requests import (
    PendingCalls,
    PserverGroup,
    Request,
    StatePage,
    count_steps,
    empty_dense,
    log_given_up,
    take_part,
)
from psrt.core.counters import Counters
from psrt.core.errors import DeadlineError, InternalError, PsrtError
from psrt.core.specs import Geo
from psrt.core.tensors import SelectedRows
from psrt.core.tracing import traced
from psrt.core.types import F32, I64
from psrt.kernels.tables import rows as row_kernels
from psrt.rpc.methods import TRAINED, Method

MOST_PASSES = 4
"""A pushed residual leaves its rounding error; the next pass pushes that, and then nothing is left.
Numbers that are not finite never get there."""


class GeoMetrics:
    def __init__(self, counters: Counters) -> None:
        self.steps = counters.counter("steps_sent", "mini-batches whose changes were pushed")
        self.exchanges = counters.counter("exchanges", "exchanges with all pservers at once")
        self.wait_s = counters.timer("geo_wait_s", "seconds spent waiting for an exchange")


@dataclass(frozen=True)
class PendingExchange:
    """An exchange under way, started after `own_steps` steps of this trainer."""

    given: Given
    requests: list[Request]
    answer: PendingCalls
    own_steps: int


class GeoCommunicator(BaseCommunicator):
    """`finish` takes the gradients of sparse tables; dense parameters are up to date by then."""

    def __init__(
        self,
        mode: Geo,
        pservers: PserverGroup,
        on_wait: Callable[[str], None],
        local: LocalParameters,
    ) -> None:
        super().__init__(pservers, on_wait)
        self._local, self._tables = local, local.tables
        self._agreement = Agreement(pservers.plan, pservers.router, local, pservers.counters)
        self._schedule = SyncSchedule(mode.update_frequency)
        self._me, self._policy = pservers.trainer, mode.on_trainer_loss
        self._threads = pservers.endpoint_threads("geo")
        self._under_way: PendingExchange | None = None
        self._wanted: Mapping[str, I64] = {}
        self._own_steps = self._other_steps = self._answered_steps = 0
        self._turns = CutTurns()
        self._copy: list[StatePage] = []
        self._metrics = GeoMetrics(pservers.counters)

    def start(self, timeout_s: float) -> dict[str, F32]:
        """Parameters as the pservers hold them; the trainer must train in the arrays returned."""
        self._connect(timeout_s)
        dense = empty_dense(self._pservers.plan.dense_shapes)
        state = self._restored()
        requests = self._pull(dense, self._pservers.call_timeout_s)
        self._agreement.begin(dense, requests, state.dense)
        return dense

    def use_rates(self, rates: Mapping[str, float], sums: bool = False) -> None:
        """Let the trainer's own tables learn at these rates: changes are pushed as they are."""
        for name in rates.keys() & self._tables.keys():
            self._tables[name].rate = rates[name]

    def pull_rows(self, wanted: Mapping[str, I64]) -> dict[str, F32]:
        """The trainer's own rows."""
        self._check()
        return {name: self._tables[name].read(ids) for name, ids in wanted.items()}

    def begin(self, wanted: Mapping[str, I64]) -> None:
        """Store the ids: rows of the next step contain the updates of this one."""
        self._wanted = wanted

    def offer(self, name: str, gradient: Gradient) -> None:
        """Gradients are not sent."""

    @traced("finish")
    def finish(self, gradients: Gradients) -> Pulled:
        """Update the tables, exchange if one is due, and read the rows of the next step."""
        self._check()
        for name, gradient in gradients.items():
            self._apply(name, gradient)
        self._own_steps += 1
        self._position = self._next_position
        due = self._schedule.step(self._under_way is not None and self._under_way.answer.is_done)
        if due.merge:
            self._merge(self._pservers.call_timeout_s)
        self._turns.step_ended()
        if due.start:
            self._await_frozen(self._pservers.call_timeout_s)
            given = self._agreement.give(self._pservers.trainers)
            self._start(given, self._pservers.call_timeout_s, exact=False)
        wanted, self._wanted = self._wanted, {}
        return Pulled(rows=self.pull_rows(wanted))

    def _on_its_way(self) -> tuple[int, int]:
        return 0, self._own_steps - self._answered_steps

    def flush(self, timeout_s: float, final: bool = False) -> dict[str, F32]:
        """Push all changes of this trainer, to the last bit, and take those of others."""
        self._check()
        self._turns.work()
        deadline = time.monotonic() + timeout_s
        if self._under_way is not None:
            self._merge(time_left(deadline))
        for number in range(MOST_PASSES):
            self._await_frozen(time_left(deadline))
            given = self._agreement.give(1, all_rows=True)
            if number and not given.changes:
                break
            self._start(given, time_left(deadline), exact=True)
            self._merge(time_left(deadline))
        if final:
            self._pservers.meet(TRAINED, reached=1, awaited=0, timeout_s=time_left(deadline))
            self._turns.rest()
        return self._agreement.dense

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """See `Communicator.at_rest`."""
        self._turns.rest()
        try:
            yield
        finally:
            self._turns.work()

    def close(self) -> None:
        self._turns.end()
        self._threads.close()
        super().close()

    def _last(self, timeout_s: float) -> dict[str, F32]:
        """Flush, wait until all others have trained, take their changes, complete.

        Waits as long as other trainers compute or push; raises `DeadlineError` once none does for
        `timeout_s`.
        Does not wait if this process was asked to end: then its parameters differ from the others'.
        """
        self.flush(timeout_s, final=not self._pservers.is_hurried)
        if not self._pservers.is_hurried:
            self._await_others(timeout_s)
            self._turns.work()
            answer = self._agreement.empty_answer()
            self._agreement.take(answer, self._pull(answer, timeout_s))
        self._turns.end(timeout_s)
        self._complete(timeout_s, self._position())
        return self._agreement.dense

    def _take_part(self, number: int) -> None:
        try:
            with self._turns.taking_part():
                if take_part(self._pservers, number, self._pushes_held):
                    self._pservers.send_state(number, self._copy)
                    self._pservers.took_part(number)
        except PsrtError as error:
            log_given_up(error)
        finally:
            self._copy = []

    @contextmanager
    def _pushes_held(self, timeout_s: float) -> Iterator[str]:
        with self._turns.pushes_held():
            with self._turns.copying(timeout_s):
                uncounted = self._schedule.uncounted_steps
                counts = Counts(self._own_steps, self._other_steps, uncounted)
                self._copy = self._agreement.copied(counts)
                position, under_way = self._position(), self._under_way
            if under_way is not None:
                under_way.answer.wait("exchanging changes", timeout_s)
            yield position

    def _restored(self) -> RestoredState:
        """The state that this trainer goes on from; empty unless a cut is resumed."""
        group, cut = self._pservers, self._pservers.resumed.cut
        state = RestoredState(self._local, group.plan.dense_shapes, self._me, cut)
        if cut:
            for trainer, page in group.stored_states():
                state.take(trainer, page)
            state.finish()
            counts = state.counts
            self._own_steps, self._other_steps, self._schedule.uncounted_steps = counts
            self._answered_steps = self._own_steps - self._schedule.uncounted_steps
            self._agreement.count_others(self._other_steps)
        return state

    def _apply(self, name: str, gradient: Gradient) -> None:
        if not isinstance(gradient, SelectedRows) or name not in self._tables:
            raise InternalError(f"{name} got a gradient, but in Geo the executor updates it itself")
        rows = row_kernels.merge(gradient)
        self._tables[name].apply(rows.ids, rows.values)

    def _start(self, given: Given, timeout_s: float, exact: bool) -> None:
        requests = self._agreement.requests(given.answer, exact)
        self._pservers.router.push(requests, given.changes, self._versions, exact)
        steps = self._schedule.started()
        count_steps(requests, steps)
        answer = self._pservers.submit(self._threads, Method.PUSH, requests, timeout_s)
        self._under_way = PendingExchange(given, requests, answer, self._own_steps)
        self._metrics.exchanges.add()
        self._metrics.steps.add(steps)

    def _await_frozen(self, timeout_s: float) -> None:
        if self._turns.holds_pushes:
            with self._metrics.wait_s.time():
                self._turns.await_frozen(timeout_s)

    def _merge(self, timeout_s: float) -> None:
        assert self._under_way is not None
        exchange, self._under_way = self._under_way, None
        waiting = self._pservers.span("wait for exchange")
        # After a failure some pservers may have applied the changes and others not.
        with self._permanent_failure(), self._metrics.wait_s.time(), waiting:
            self._versions = exchange.answer.wait("exchanging changes", timeout_s)
        self._schedule.merged()
        self._agreement.take(exchange.given.answer, exchange.requests)
        global_step = max(request.global_step for request in exchange.requests)
        self._answered_steps = exchange.own_steps
        self._other_steps = global_step - exchange.own_steps
        self._agreement.count_others(self._other_steps)

    def _pull(self, answer: Mapping[str, F32], timeout_s: float) -> list[Request]:
        """Pull the parameters without a push; the requests hold the rows that others changed."""
        requests = self._agreement.requests(answer, exact=True)
        with self._permanent_failure():
            self._versions = self._pservers.call(Method.PULL, requests, timeout_s)
        return requests

    def _await_others(self, patience_s: float) -> None:
        patience = Patience(patience_s, self._policy, time.monotonic())
        while True:
            try:
                self._pservers.meet(TRAINED, reached=1, awaited=1, timeout_s=patience_s)
                return
            except DeadlineError:
                members = self._pservers.members()
                awaited = [t for t in members.running(self._me) if t not in members.trained]
                if patience.idle_s(members, awaited, time.monotonic()) is not None:
                    raise
