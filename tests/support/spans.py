"""Spans that this process exports to memory, and a collector that receives those of others."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc

from psrt.core import tracing
from psrt.core.extras import found
from psrt.observe.traces import OtelTracer

TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


def is_missing() -> bool:
    """True without the packages of psrt-cluster[otel]."""
    return found("opentelemetry.sdk.trace") is None or found("opentelemetry.exporter.otlp") is None


@dataclass
class Exported:
    """Spans of a provider."""

    provider: Any
    exporter: Any

    def all(self) -> list[Any]:
        """The spans that have ended, in this order."""
        return list(self.exporter.get_finished_spans())

    def traces(self) -> dict[int, list[Any]]:
        """The spans of each trace."""
        by_id: dict[int, list[Any]] = {}
        for span in self.all():
            by_id.setdefault(span.context.trace_id, []).append(span)
        return by_id


def exported() -> Exported:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    provider, exporter = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return Exported(provider, exporter)


@contextmanager
def tracing_here(every: int = 1) -> Iterator[Exported]:
    """Trace this process inside the block."""
    spans = exported()
    tracing.set_tracer(OtelTracer(spans.provider, every))
    try:
        yield spans
    finally:
        tracing.set_tracer(None)


@dataclass(frozen=True)
class ReceivedSpan:
    service: str
    trace: str
    name: str
    attributes: dict[str, Any]


@dataclass
class Collector:
    """Receives OTLP over HTTP and gRPC."""

    http_endpoint: str
    grpc_endpoint: str
    spans: list[ReceivedSpan] = field(default_factory=list)

    def take(self, body: bytes) -> bytes:
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as messages

        request = messages.ExportTraceServiceRequest.FromString(body)
        for of_resource in request.resource_spans:
            facts = _plain(of_resource.resource.attributes)
            for scope in of_resource.scope_spans:
                self.spans += [
                    ReceivedSpan(
                        facts["service.name"],
                        span.trace_id.hex(),
                        span.name,
                        _plain(span.attributes) | facts,
                    )
                    for span in scope.spans
                ]
        answer: bytes = messages.ExportTraceServiceResponse().SerializeToString()
        return answer


@contextmanager
def collector() -> Iterator[Collector]:
    """A collector on free ports of 127.0.0.1."""
    received = Collector("", "")

    class Post(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            answer = received.take(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    over_http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Post)
    thread = threading.Thread(target=over_http.serve_forever, daemon=True)
    thread.start()
    over_grpc = grpc.server(futures.ThreadPoolExecutor(2), handlers=[_Handler(received)])
    port = over_grpc.add_insecure_port("127.0.0.1:0")
    over_grpc.start()
    received.http_endpoint = f"http://127.0.0.1:{over_http.server_port}"
    received.grpc_endpoint = f"http://127.0.0.1:{port}"
    try:
        yield received
    finally:
        over_grpc.stop(0)
        over_http.shutdown()
        over_http.server_close()
        thread.join()


class _Handler(grpc.GenericRpcHandler):  # type: ignore[misc]
    def __init__(self, received: Collector) -> None:
        self._received = received

    def service(self, call: Any) -> Any:
        if call.method != TRACES:
            return None
        return grpc.unary_unary_rpc_method_handler(lambda body, context: self._received.take(body))


def _plain(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}
