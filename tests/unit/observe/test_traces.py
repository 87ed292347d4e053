"""Spans of OpenTelemetry: which steps, which parents, and where they go."""

from __future__ import annotations

import re

import pytest

from psrt.core import tracing
from psrt.core.errors import ConfigError
from psrt.observe.traces import OtelTracer, traces
from tests.support.spans import Exported, exported, is_missing

pytestmark = pytest.mark.skipif(is_missing(), reason="no psrt-cluster[otel]")

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture
def spans() -> Exported:
    return exported()


def test_one_of_so_many_steps_is_traced(spans: Exported) -> None:
    tracer = OtelTracer(spans.provider, every=3)

    for _ in range(7):
        if (step := tracer.first("step")) is not None:
            step.end(None)

    assert [span.attributes["psrt.step"] for span in spans.all()] == [0, 3, 6]
    assert len({span.context.trace_id for span in spans.all()}) == 3


def test_a_process_that_traces_no_steps_of_its_own_traces_calls(spans: Exported) -> None:
    tracer = OtelTracer(spans.provider, every=0)
    assert tracer.first("step") is None

    served = tracer.begin("serve", "server", f"00-{TRACE}-{SPAN}-01", {"rpc.method": "PULL"})
    assert served is not None
    served.end(None)

    (span,) = spans.all()
    assert f"{span.context.trace_id:032x}" == TRACE
    assert f"{span.parent.span_id:016x}" == SPAN
    assert span.kind.name == "SERVER"
    assert re.fullmatch(f"00-{TRACE}-[0-9a-f]{{16}}-01", served.traceparent)


@pytest.mark.parametrize(
    "text",
    [
        f"00-{TRACE}-{SPAN}-00",  # the caller does not send it
        f"00-{'0' * 32}-{SPAN}-01",
        f"01-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        "\x00" * 55,
        "a" * 100_000,
    ],
)
def test_text_that_names_no_trace_is_not_traced(spans: Exported, text: str) -> None:
    assert OtelTracer(spans.provider, every=1).begin("serve", "server", text, {}) is None


def test_an_error_is_part_of_its_span(spans: Exported) -> None:
    step = OtelTracer(spans.provider, every=1).first("step")
    assert step is not None

    step.end(ValueError("no such row"))

    (span,) = spans.all()
    assert span.status.description == "no such row"
    assert span.events[0].name == "exception"


def test_nothing_is_traced_unless_it_is_asked_for() -> None:
    with traces("trainer", False, {}, every=1), tracing.span("a"):
        assert tracing.current() is None


def test_another_protocol_is_refused() -> None:
    variables = {"OTEL_EXPORTER_OTLP_PROTOCOL": "carrier pigeon"}
    with (
        pytest.raises(ConfigError, match="is 'carrier pigeon'"),
        traces("pserver", True, variables),
    ):
        pass
