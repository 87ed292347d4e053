"""The profiler: what it adds up, what it keeps, and the timeline it writes."""

from __future__ import annotations

import json
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from psrt import Executor, Scope, layers, optimizer, program
from psrt.core.errors import ConfigError
from psrt.executor.profiling.costs import StepTime
from psrt.executor.profiling.profile import Profiler
from psrt.graph.program import Op, Program

MS = 1_000_000
FC = Op("fc", {}, {}, layer="fc_0", origin="train.py:7")
MEAN = Op("mean", {}, {}, layer="mean_0", origin="train.py:9")
STEPS, BATCH, WIDTH = 3, 128, 600


class FakeTime:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        return self.now_ns

    def pass_ms(self, ms: float) -> None:
        self.now_ns += int(ms * MS)


def run_op(profiler: Profiler, time: FakeTime, op: Op, ms: float) -> None:
    started_ns = time()
    time.pass_ms(ms)
    profiler.record(op, started_ns, time())


def trained_step(profiler: Profiler, time: FakeTime) -> None:
    """20 ms: 12 in ops, 3 waiting, 1 in named and 4 in other Python."""
    with profiler.span("step", "step"):
        with profiler.span("feed", "data"):
            time.pass_ms(1)
        time.pass_ms(3)
        with profiler.span("run", "step"):
            run_op(profiler, time, FC, 10)
            time.pass_ms(1)
            run_op(profiler, time, MEAN, 2)
        with profiler.span("push-pull", "communicate"):
            time.pass_ms(2)
        time.pass_ms(1)


def profiled_steps(count: int) -> Profiler:
    time = FakeTime()
    profiler = Profiler(clock_ns=time)
    for _ in range(count):
        trained_step(profiler, time)
    return profiler


def trace_of(profiler: Profiler, directory: Path) -> list[dict[str, Any]]:
    path = directory / "trace.json"
    profiler.write_chrome_trace(path, process=3)
    trace = json.loads(path.read_text())
    events: list[dict[str, Any]] = trace["traceEvents"]
    return events


# --- what it adds up ------------------------------------------------------------------------------


def test_a_step_is_ops_waits_and_the_python_between_them() -> None:
    assert profiled_steps(4).step_time() == StepTime(
        steps=4, wall_ns=80 * MS, ops_ns=48 * MS, waits_ns=12 * MS
    )
    assert profiled_steps(4).step_time().between_ns == 20 * MS


def test_the_table_lists_ops_by_time_then_spans_and_ends_with_the_step() -> None:
    lines = profiled_steps(4).table().splitlines()

    rows = [" ".join(line.split()) for line in lines]
    assert rows[1] == "fc fc_0 train.py:7 forward 4 40.0 10,000.0 50.0 %"
    assert rows[2] == "mean mean_0 train.py:9 forward 4 8.0 2,000.0 10.0 %"
    assert rows[3] == "(step) step 4 16.0 4,000.0 20.0 %"
    assert [row.split()[0] for row in rows[4:7]] == ["(push-pull)", "(feed)", "(run)"]
    assert lines[-1] == (
        "4 steps of 20.000 ms: ops 12.000 ms (60.0 %), waits 3.000 ms (15.0 %), "
        "Python between ops 5.000 ms (25.0 %)"
    )
    assert len({len(line) for line in lines[:-1]}) == 1


def test_ops_beyond_the_asked_for_number_are_one_row() -> None:
    lines = profiled_steps(2).table(count=1).splitlines()

    assert lines[1].startswith("fc ")
    assert " ".join(lines[2].split()) == "1 more 2 4.0 2,000.0 10.0 %"


def test_ops_outside_of_steps_do_not_count_as_step_time() -> None:
    time = FakeTime()
    profiler = Profiler(clock_ns=time)
    run_op(profiler, time, FC, 5)

    assert profiler.table().splitlines()[-1] == "no step was taken; 5.0 ms in ops"
    trained_step(profiler, time)
    assert profiler.table().splitlines()[-1].endswith("outside of steps 5.0 ms in ops")


def test_equal_ops_of_several_replicas_are_one_row() -> None:
    profiler = Profiler()
    for replica in range(3):
        op = Op("fc", {}, {}, layer="fc_0", origin="train.py:7")
        profiler.record(op, 0, 2 * MS, replica)

    (cost,) = profiler.costs()

    assert (cost.calls, cost.total_ns) == (3, 6 * MS)


def test_a_step_that_fails_is_closed() -> None:
    time = FakeTime()
    profiler = Profiler(clock_ns=time)
    with suppress(KeyError), profiler.span("step", "step"):
        time.pass_ms(2)
        raise KeyError

    trained_step(profiler, time)

    assert profiler.step_time().steps == 2
    assert profiler.step_time().wall_ns == 22 * MS


# --- what it keeps --------------------------------------------------------------------------------


def test_only_the_last_events_are_kept_and_the_totals_of_all(tmp_path: Path) -> None:
    profiler = Profiler(keep_events=5)
    for number in range(100):
        profiler.record(FC, number, number + 1)

    events = [event for event in trace_of(profiler, tmp_path) if event["ph"] == "X"]

    assert [event["ts"] * 1e3 for event in events] == [95, 96, 97, 98, 99]
    assert profiler.costs()[0].calls == 100


def test_threads_record_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    profiler, threads, runs = Profiler(), 4, 2000
    together = threading.Barrier(threads)
    ops = [Op("fc", {}, {}, layer=f"fc_{number}") for number in range(8)]

    def work() -> None:
        together.wait(10)
        for number in range(runs):
            profiler.record(ops[number % 8], 0, MS)

    workers = [threading.Thread(target=work, name=f"worker-{n}") for n in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)

    assert {cost.calls for cost in profiler.costs()} == {threads * runs // 8}
    assert len(profiler.costs()) == 8
    events = trace_of(profiler, tmp_path)
    counted = Counter(event["tid"] for event in events if event["ph"] == "X")
    assert list(counted.values()) == [runs] * threads
    names = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert names == {f"worker-{n}" for n in range(threads)}


# --- the timeline ---------------------------------------------------------------------------------


def test_the_trace_names_process_threads_ops_and_steps(tmp_path: Path) -> None:
    events = trace_of(profiled_steps(2), tmp_path)

    head = {event["name"]: event["args"]["name"] for event in events if event["ph"] == "M"}
    assert head == {"process_name": "trainer 3", "thread_name": threading.current_thread().name}
    assert {event["pid"] for event in events} == {3}
    ops = [event for event in events if event["name"] == "fc"]
    assert [(op["ts"], op["dur"], op["cat"]) for op in ops] == [
        (4000.0, 10000.0, "forward"),
        (24000.0, 10000.0, "forward"),
    ]
    assert [op["args"]["step"] for op in ops] == [1, 2]
    assert ops[0]["args"]["layer"] == "fc_0"
    assert ops[0]["args"]["line"] == "train.py:7"


def test_events_of_a_thread_nest(tmp_path: Path) -> None:
    events = [event for event in trace_of(profiled_steps(3), tmp_path) if event["ph"] == "X"]

    open_until: list[float] = []
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        while open_until and open_until[-1] <= event["ts"]:
            open_until.pop()
        assert not open_until or event["ts"] + event["dur"] <= open_until[-1]
        open_until.append(event["ts"] + event["dur"])


def test_a_trace_is_written_whole_or_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone/trace\.json cannot be written"):
        Profiler().write_chrome_trace(tmp_path / "gone" / "trace.json")

    trace_of(profiled_steps(1), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["trace.json"]


# --- an executor under the profiler ---------------------------------------------------------------


def network() -> Program:
    with program() as p:
        hidden = layers.fc(layers.data("x", (WIDTH,)), WIDTH, act="relu")
        cost = layers.square_error_cost(layers.fc(hidden, 1), layers.data("y"))
        optimizer.Sgd(0.01).minimize(layers.mean(cost))
    return p


def run_steps(executor: Executor) -> None:
    rng = np.random.default_rng(2)
    for _ in range(STEPS):
        x = rng.standard_normal((BATCH, WIDTH), dtype=np.float32)
        executor.run({"x": x, "y": x[:, :1]}, roles=("forward", "backward", "optimize"))


def test_every_op_of_a_local_training_is_recorded_with_its_line() -> None:
    p, scope, profiler = network(), Scope(), Profiler()
    scope.init_parameters(p)
    executor = Executor(p, scope)
    executor.profiler = profiler

    run_steps(executor)

    costs = {cost.label: cost for cost in profiler.costs() if cost.label.is_op}
    expected = Counter((op.type, op.layer, op.origin, op.role) for op in p.ops)
    found = {(at.name, at.layer, at.origin, at.category): costs[at].calls for at in costs}
    assert found == {key: STEPS * count for key, count in expected.items()}
    time = profiler.step_time()
    assert time.steps == STEPS
    assert time.ops_ns == sum(cost.total_ns for cost in costs.values())
    assert 0 < time.ops_ns < time.wall_ns


def test_the_table_of_a_local_training_has_its_matrix_products_with_their_lines() -> None:
    p, scope = network(), Scope()
    scope.init_parameters(p)
    executor = Executor(p, scope)
    executor.profiler = profiler = Profiler()

    run_steps(executor)

    rows = {tuple(line.split()[:2]): line for line in profiler.table().splitlines()}
    assert "test_profile.py:" in rows["fc", "fc_0"]
    assert "test_profile.py:" in rows["fc_grad", "fc_0"]


def test_nothing_is_recorded_once_the_profiler_is_taken_off() -> None:
    p, scope, profiler = network(), Scope(), Profiler()
    scope.init_parameters(p)
    executor = Executor(p, scope)
    assert executor.profiler is None
    executor.profiler = profiler
    executor.profiler = None

    run_steps(executor)

    assert profiler.costs() == []
