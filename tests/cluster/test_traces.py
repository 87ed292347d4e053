"""A traced step: its spans on the trainer and on the pservers are one trace, over every carrier."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Literal
from unittest import mock

import numpy as np
import pytest

import psrt
from psrt import layers
from psrt.core.specs import Async, CommunicationMode, Geo, HalfAsync, Ssp, Sync
from psrt.graph.program import Program
from psrt.partition.transpiler import DistributeTranspiler
from psrt.rpc import dialing
from psrt.trainer.training.connected import ConnectedExecutor
from tests import house
from tests.support.cluster import in_threads
from tests.support.live_pservers import live_pservers
from tests.support.spans import Exported, is_missing, tracing_here

pytestmark = pytest.mark.skipif(is_missing(), reason="no psrt-cluster[otel]")

Carrier = Literal["stream", "grpc"]
NOT_TRACED = {"next"}
"""The stop `next` is the `run` of another step."""
STEPS = 4


def program() -> Program:
    """One dense parameter and one table."""
    with psrt.program(seed=3) as made:
        ids = layers.data("ids", shape=(1,), dtype="int64")
        row = layers.embedding(ids, (100, 4), is_sparse=True, is_distributed=True)
        loss = layers.mean(layers.fc(layers.flatten(row), 2, bias=False))
        psrt.optimizer.Adagrad(0.1).minimize(loss)
    return made


def train(
    mode: CommunicationMode, carrier: Carrier = "stream", trainers: int = 1, pservers: int = 1
) -> None:
    trained = program()
    feed = {"ids": np.array([[7], [8], [7]], np.int64)}

    def of_one(trainer: int, endpoints: list[str]) -> None:
        transpiler = DistributeTranspiler()
        transpiler.transpile(trained, trainer, endpoints, trainers, mode)
        part = transpiler.get_trainer_program()
        with ConnectedExecutor(part, carrier=carrier, call_timeout_s=60.0) as executor:
            executor.run_from([feed] * STEPS)

    with live_pservers(pservers) as live:
        endpoints = [pserver.endpoint for pserver in live]
        in_threads([lambda t=trainer: of_one(t, endpoints) for trainer in range(trainers)])


def names(spans: list[Any]) -> set[str]:
    return {span.name for span in spans}


def stops() -> set[str]:
    block = re.search(r"```stops\n(.*?)```", house.DESIGN.read_text(), re.S)
    assert block
    return {line.split()[0] for line in block[1].strip().splitlines()}


@pytest.fixture(scope="module")
def of_two() -> Exported:
    """The spans of two trainers in mode sync."""
    with tracing_here() as spans:
        train(Sync(), trainers=2)
    return spans


def test_the_spans_are_the_stops_of_the_design_file(of_two: Exported) -> None:
    assert stops() - NOT_TRACED <= names(of_two.all())


def test_every_step_is_one_trace_with_the_work_of_the_pserver_inside(of_two: Exported) -> None:
    traces = of_two.traces()

    assert len(traces) == 2 * STEPS
    for spans in traces.values():
        assert {"step", "run", "finish", "carrier", "serve", "admit", "read"} <= names(spans)
        by_id = {span.context.span_id: span for span in spans}
        roots = [span for span in spans if span.parent is None]
        assert [span.name for span in roots] == ["step"]
        assert all(span.parent.span_id in by_id for span in spans if span.parent is not None)
        served = [span for span in spans if span.name == "serve"]
        assert {by_id[span.parent.span_id].name for span in served} == {"carrier"}


def test_a_round_is_in_the_trace_of_the_trainer_that_completed_it(of_two: Exported) -> None:
    with_round = [spans for spans in of_two.traces().values() if "round" in names(spans)]

    assert len(with_round) == STEPS
    assert all({"apply", "kernel"} <= names(spans) for spans in with_round)


def test_a_trainer_that_waits_for_another_one_has_a_span_of_that(of_two: Exported) -> None:
    waited = [spans for spans in of_two.traces().values() if "wait" in names(spans)]

    assert waited
    assert all("round" not in names(spans) for spans in waited)


@pytest.fixture
def tcp_only() -> Iterator[None]:
    with mock.patch.object(dialing, "host_id", return_value="another host"):
        yield


def is_one_trace(spans: Exported) -> bool:
    (trace,) = spans.traces().values()
    by_name = {span.name: span for span in trace}
    return by_name["serve"].parent.span_id in {span.context.span_id for span in trace}


@pytest.mark.usefixtures("tcp_only")
def test_the_context_travels_over_tcp() -> None:
    with tracing_here(every=STEPS) as spans:
        train(Sync())

    assert is_one_trace(spans)


@pytest.mark.parametrize("carrier", ["stream", "grpc"])
def test_the_context_travels_over_unix_sockets_with_shared_memory_and_over_grpc(
    carrier: Carrier,
) -> None:
    with tracing_here(every=STEPS) as spans:
        train(Sync(), carrier)

    assert is_one_trace(spans)
    assert {"frame", "reply"} <= names(spans.all())


MODES = [HalfAsync(), Async(), Async(max_merge_var_num=2), Ssp(), Geo(update_frequency=2)]


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: type(mode).__name__)
def test_pushes_belong_to_their_steps_in_every_mode(mode: CommunicationMode) -> None:
    with tracing_here() as spans:
        train(mode, pservers=2)

    traces = spans.traces()
    assert len(traces) == STEPS
    pushing = [each for each in traces.values() if {"serve", "apply", "kernel"} <= names(each)]
    assert pushing
    assert all("step" in names(each) for each in traces.values())


def test_without_a_tracer_no_frame_has_a_context() -> None:
    with ExitStack() as stack:
        seen = stack.enter_context(mock.patch("psrt.rpc.traced_calls.tracing.span_of_call"))
        train(Sync())

    assert not seen.called
