"""A profiler: what every op and every named stop of a step took, on every thread.

    profiler = Profiler()
    executor.profiler = profiler
    ...
    print(profiler.table())
    profiler.write_chrome_trace(Path("trace.json"))

The last `keep_events` events are kept for the timeline, totals of everything for the table, so the
memory of a profile does not grow with training. Each thread adds up its own totals and appends to
one bounded deque, neither of which needs a lock. Without a profiler an executor does no work for
one.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from psrt.executor.profiling import chrome_trace, costs
from psrt.executor.profiling.chrome_trace import Event
from psrt.executor.profiling.costs import Cost, Label, StepTime
from psrt.graph.program import Op

Category: TypeAlias = Literal["step", "python", "data", "communicate", "wait"]
"""What a span is. `step`: one step of training; `python`: a named part of the Python between ops;
the others wait, for a batch, for the pservers, for other threads."""
WAITS = frozenset({"data", "communicate", "wait"})


@dataclass(slots=True)
class _Total:
    """What one thread has spent on one label."""

    label: int
    calls: int = 0
    spent_ns: int = 0


@dataclass(slots=True)
class _ThreadTimes:
    """What one thread has spent, written by that thread alone.

    A span's time does not contain that of ops and spans inside it, so that the first three add up.
    The others sum up finished steps. `totals` are by id of the op, or name and category of a span.
    """

    thread: int
    ops_ns: int = 0
    waits_ns: int = 0
    python_ns: int = 0
    in_step: bool = False
    steps: int = 0
    wall_ns: int = 0
    step_ops_ns: int = 0
    step_waits_ns: int = 0
    totals: dict[Hashable, _Total] = field(default_factory=dict)

    @property
    def covered_ns(self) -> int:
        return self.ops_ns + self.waits_ns + self.python_ns

    def close_step(self, wall_ns: int, ops_before_ns: int, waits_before_ns: int) -> None:
        self.in_step = False
        self.steps += 1
        self.wall_ns += wall_ns
        self.step_ops_ns += self.ops_ns - ops_before_ns
        self.step_waits_ns += self.waits_ns - waits_before_ns


class Profiler:
    """Records ops and spans from any thread. `clock_ns` is the clock that callers read too."""

    def __init__(
        self, keep_events: int = 200_000, clock_ns: Callable[[], int] = time.perf_counter_ns
    ) -> None:
        self.clock_ns = clock_ns
        self._step = 0
        self._events: deque[Event] = deque(maxlen=keep_events)
        self._labels: list[Label] = []
        self._ops: list[Op] = []
        self._accounts: list[_ThreadTimes] = []
        self._threads: list[str] = []
        self._own = threading.local()
        self._lock = threading.Lock()

    # --- recording --------------------------------------------------------------------------------

    def record(self, op: Op, started_ns: int, ended_ns: int, replica: int = 0) -> None:
        """One run of an op by the calling thread: the one entry for executors of every kind."""
        try:
            account: _ThreadTimes = self._own.account
            total = account.totals[id(op)]
        except (AttributeError, KeyError):
            account, total = self._meet_op(op)
        spent_ns = ended_ns - started_ns
        total.calls += 1
        total.spent_ns += spent_ns
        account.ops_ns += spent_ns
        self._events.append(
            (total.label, started_ns, ended_ns, replica, self._step, account.thread)
        )

    @contextmanager
    def span(self, name: str, category: Category = "python") -> Iterator[None]:
        """Everything the calling thread does inside. A `step` inside a step is part of that one."""
        account = self._account()
        is_step = category == "step" and not account.in_step
        if is_step:
            account.in_step = True
            self._step += 1
        ops_ns, waits_ns, covered_ns = account.ops_ns, account.waits_ns, account.covered_ns
        started_ns = self.clock_ns()
        try:
            yield
        finally:
            ended_ns = self.clock_ns()
            own_ns = ended_ns - started_ns - (account.covered_ns - covered_ns)
            if is_step:
                account.close_step(ended_ns - started_ns, ops_ns, waits_ns)
            elif category in WAITS:
                account.waits_ns += own_ns
            else:
                account.python_ns += own_ns
            total = self._total(account, (name, category), Label(name, category))
            total.calls += 1
            total.spent_ns += own_ns
            event = (total.label, started_ns, ended_ns, 0, self._step, account.thread)
            self._events.append(event)

    def _account(self) -> _ThreadTimes:
        """The calling thread's."""
        account: _ThreadTimes | None = getattr(self._own, "account", None)
        if account is None:
            with self._lock:
                account = self._own.account = _ThreadTimes(len(self._accounts))
                self._accounts.append(account)
                self._threads.append(threading.current_thread().name)
        return account

    def _meet_op(self, op: Op) -> tuple[_ThreadTimes, _Total]:
        """The first run of an op on a thread."""
        account = self._account()
        self._ops.append(op)  # its id is its own only as long as it lives
        label = Label(op.type, op.role, op.layer, op.origin, is_op=True)
        return account, self._total(account, id(op), label)

    def _total(self, account: _ThreadTimes, key: Hashable, label: Label) -> _Total:
        known = account.totals.get(key)
        if known is None:
            with self._lock:
                if label not in self._labels:
                    self._labels.append(label)
                known = account.totals[key] = _Total(self._labels.index(label))
        return known

    # --- what came of it --------------------------------------------------------------------------

    def costs(self) -> list[Cost]:
        """Calls and time of every op and span, of all threads together."""
        calls, spent_ns = Counter[int](), Counter[int]()
        for account in self._accounts:
            for total in list(account.totals.values()):
                calls[total.label] += total.calls
                spent_ns[total.label] += total.spent_ns
        return [Cost(self._labels[label], calls[label], spent_ns[label]) for label in calls]

    def step_time(self) -> StepTime:
        """Where the time of all finished steps went."""
        accounts = self._accounts
        ops_ns = sum(account.step_ops_ns for account in accounts)
        return StepTime(
            steps=sum(account.steps for account in accounts),
            wall_ns=sum(account.wall_ns for account in accounts),
            ops_ns=ops_ns,
            waits_ns=sum(account.step_waits_ns for account in accounts),
            elsewhere_ns=sum(account.ops_ns for account in accounts) - ops_ns,
        )

    def table(self, count: int = 10) -> str:
        """The most expensive ops, all spans, and a last line on where the time of a step goes."""
        return costs.table(self.costs(), self.step_time(), count)

    def write_chrome_trace(self, path: Path, process: int = 0) -> None:
        """Write the kept events as a timeline; `process` is the trainer's number.

        Raises `ConfigError` when the file cannot be written, and leaves no half of it.
        """
        events = list(self._events)
        records = chrome_trace.records(events, self._labels, self._threads, process)
        chrome_trace.write(path, records)


def span_of(
    profiler: Profiler | None, name: str, category: Category = "python"
) -> AbstractContextManager[None]:
    """`profiler.span(name, category)`, or nothing at all without a profiler."""
    return nullcontext() if profiler is None else profiler.span(name, category)
