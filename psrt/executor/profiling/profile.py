"""The profiler: time of every op and every named span of a step, on every thread.

    profiler = Profiler()
    executor.profiler = profiler
    ...
    print(profiler.table())
    profiler.write_chrome_trace(Path("trace.json"))

The last `keep_events` events are kept for the timeline, and totals of all events for the table, so
the memory of a profile does not grow with training. Each thread sums its own totals and appends to
one bounded deque; neither needs a lock. Without a profiler an executor has no cost for one.
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
"""Kinds of spans. `step`: one training step; `python`: a named part of the Python between ops; the
others are waits for a batch, the pservers, or other threads."""
WAITS = frozenset({"data", "communicate", "wait"})


@dataclass(slots=True)
class _Total:
    """Calls and time of one thread for one label."""

    label: int
    calls: int = 0
    spent_ns: int = 0


@dataclass(slots=True)
class _ThreadTimes:
    """Times of one thread, written only by that thread.

    The time of a span excludes ops and spans inside it, so that the first three add up. The other
    fields sum finished steps. `totals` are by id of the op, or name and category of a span.
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
    """Records ops and spans from any thread; callers read the clock `clock_ns` too."""

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
        """Record one run of an op by the calling thread; executors of every kind call it."""
        try:
            account: _ThreadTimes = self._own.account
            total = account.totals[id(op)]
        except (AttributeError, KeyError):
            account, total = self._register_op(op)
        spent_ns = ended_ns - started_ns
        total.calls += 1
        total.spent_ns += spent_ns
        account.ops_ns += spent_ns
        self._events.append(
            (total.label, started_ns, ended_ns, replica, self._step, account.thread)
        )

    @contextmanager
    def span(self, name: str, category: Category = "python") -> Iterator[None]:
        """Record work of the calling thread; a `step` inside a step is part of the outer one."""
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
        """The times of the calling thread."""
        account: _ThreadTimes | None = getattr(self._own, "account", None)
        if account is None:
            with self._lock:
                account = self._own.account = _ThreadTimes(len(self._accounts))
                self._accounts.append(account)
                self._threads.append(threading.current_thread().name)
        return account

    def _register_op(self, op: Op) -> tuple[_ThreadTimes, _Total]:
        """Register an op at its first run on a thread."""
        account = self._account()
        self._ops.append(op)  # an id is unique only while the op lives
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

    # --- results ----------------------------------------------------------------------------------

    def costs(self) -> list[Cost]:
        """Calls and time of every op and span, summed over all threads."""
        calls, spent_ns = Counter[int](), Counter[int]()
        for account in self._accounts:
            for total in list(account.totals.values()):
                calls[total.label] += total.calls
                spent_ns[total.label] += total.spent_ns
        return [Cost(self._labels[label], calls[label], spent_ns[label]) for label in calls]

    def step_time(self) -> StepTime:
        """The anatomy of all finished steps."""
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
        """The most expensive ops, all spans, and a last line with the anatomy of a step."""
        return costs.table(self.costs(), self.step_time(), count)

    def write_chrome_trace(self, path: Path, process: int = 0) -> None:
        """Write the kept events as a timeline; `process` is the trainer's number.

        Raises `ConfigError` when the file cannot be written, and leaves no partial file.
        """
        events = list(self._events)
        records = chrome_trace.records(events, self._labels, self._threads, process)
        chrome_trace.write(path, records)


def span_of(
    profiler: Profiler | None, name: str, category: Category = "python"
) -> AbstractContextManager[None]:
    """`profiler.span(name, category)`, or a null context without a profiler."""
    return nullcontext() if profiler is None else profiler.span(name, category)
