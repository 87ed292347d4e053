"""Spans of calls: named in the header, and not begun for callers that are not admitted."""

from __future__ import annotations

import pytest

from psrt.core import tracing
from psrt.rpc import pb
from psrt.rpc.access import EVERYBODY
from psrt.rpc.methods import Method
from psrt.rpc.serving import Peer
from psrt.rpc.traced_calls import span_of_carrier, span_of_request
from tests.support.spans import is_missing, tracing_here

pytestmark = pytest.mark.skipif(is_missing(), reason="no psrt-cluster[otel]")

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_the_header_of_a_traced_call_names_its_span() -> None:
    header = pb.Header(method=Method.PULL)

    @tracing.first_traced("step")
    def step() -> None:
        with span_of_carrier(header, "a:6170"):
            pass

    with tracing_here() as spans:
        step()

    (carrier, _) = spans.all()
    assert header.traceparent.split("-")[2] == f"{carrier.context.span_id:016x}"
    assert carrier.attributes == {"rpc.method": "PULL", "server.address": "a:6170"}


def test_a_call_that_is_not_traced_has_no_bytes_of_a_trace() -> None:
    header = pb.Header(method=Method.PULL)
    before = header.SerializeToString()

    with tracing_here(), span_of_carrier(header, "a:6170"):
        pass

    assert header.SerializeToString() == before


@pytest.mark.parametrize("is_admitted", [False, True])
def test_only_an_admitted_caller_begins_a_span(is_admitted: bool) -> None:
    peer = Peer("grpc", "a:1", grant=EVERYBODY if is_admitted else None)
    header = pb.Header(method=Method.PULL, trainer=3, traceparent=PARENT)

    with tracing_here() as spans, span_of_request(header, peer):
        pass

    assert [span.attributes["psrt.trainer"] for span in spans.all()] == [3] * is_admitted
