"""Threads of a communicator in a profile, alongside the steps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from psrt.executor.profiling.profile import Profiler
from psrt.rpc.methods import Method
from tests.support.communicators import (
    ASYNC_AT_ONCE,
    HALF_ASYNC,
    IDS,
    LONG_S,
    SSP,
    Builder,
    ModeUnderTest,
    gradients,
)

STEPS = 3


@pytest.fixture
def fakes() -> Iterator[Builder]:
    builder = Builder("fake")
    yield builder
    builder.close()


def trace_of(fakes: Builder, mode: ModeUnderTest, out: Path) -> dict[str, list[dict[str, Any]]]:
    """The slices of some steps, by the name of their thread."""
    world, profiler = fakes(mode), Profiler()
    world.trainer.start(LONG_S)
    world.trainer.watch(profiler)
    for _ in range(STEPS):
        with profiler.span("step", "step"):
            world.trainer.begin({"emb": IDS})
            world.trainer.finish(gradients())
    world.trainer.flush(LONG_S)
    world.trainer.watch(None)
    profiler.write_chrome_trace(out)
    events = json.loads(out.read_text())["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    by_thread: dict[str, list[dict[str, Any]]] = {name: [] for name in names.values()}
    for event in events:
        if event["ph"] == "X":
            by_thread[names[event["tid"]]].append(event)
    return by_thread


def test_async_shows_pushes_and_pulls_on_rows_of_their_own(fakes: Builder, tmp_path: Path) -> None:
    trace = trace_of(fakes, ASYNC_AT_ONCE, tmp_path / "out.json")

    shown = {thread: {slice["name"] for slice in slices} for thread, slices in trace.items()}
    for endpoint in ("ps0:6170", "ps1:6170"):
        assert shown[f"push {endpoint}"] == {"exchange"}  # dense parameters come with the answer
        assert shown[f"rows {endpoint}"] == {"pull rows"}
        assert shown[f"pserver {endpoint}"] == {"pull dense"}
        assert len(trace[f"push {endpoint}"]) == STEPS
    assert {"step", "wait for rows"} <= shown["MainThread"]
    categories = {slice["cat"] for slice in trace["push ps0:6170"]}
    assert categories == {"communicate"}


def test_ssp_shows_the_gate_and_what_is_pulled_behind_it(fakes: Builder, tmp_path: Path) -> None:
    trace = trace_of(fakes, SSP, tmp_path / "out.json")

    names = {thread: [slice["name"] for slice in slices] for thread, slices in trace.items()}
    assert names["sender 0"] == ["meet"] * STEPS
    assert set(names["rows ps0:6170"]) == {"pull dense"}
    assert names["gate ps0:6170"] == ["meet"]  # the others are known to be far enough after it


def test_half_async_shows_one_exchange_a_step_and_pserver(fakes: Builder, tmp_path: Path) -> None:
    trace = trace_of(fakes, HALF_ASYNC, tmp_path / "out.json")

    for endpoint in ("ps0:6170", "ps1:6170"):
        names = [slice["name"] for slice in trace[f"pserver {endpoint}"]]
        assert names == ["exchange"] * STEPS + ["pull dense"]


def test_time_beside_the_steps_is_not_counted_as_theirs(fakes: Builder) -> None:
    world, profiler = fakes(ASYNC_AT_ONCE), Profiler()
    world.trainer.start(LONG_S)
    world.trainer.watch(profiler)

    world.trainer.finish(gradients())
    world.trainer.flush(LONG_S)

    assert world.calls[Method.PUSH] == 2
    costs = {cost.label.name: cost.calls for cost in profiler.costs()}
    assert costs["exchange"] == 2
    assert profiler.step_time().waits_ns == 0
