"""Traces by OpenTelemetry: spans of this process to a collector, by OTLP.

The variables of OpenTelemetry apply, such as OTEL_EXPORTER_OTLP_ENDPOINT, _PROTOCOL and _HEADERS,
OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES. psrt itself samples: one step of so many. Packages
of the extra `psrt-cluster[otel]` are imported only if traces are asked for.
"""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psrt
from psrt.core import tracing
from psrt.core.errors import ConfigError
from psrt.core.extras import required
from psrt.core.log import follow
from psrt.core.threads import CrashReport, start_thread

log = logging.getLogger("psrt.observe")

FLUSH_S = 3.0
"""Longest wait at the end of a process for the last spans to be sent."""
PROTOCOLS = ("grpc", "http/protobuf")
_TRACEPARENT = re.compile("00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_SAMPLED = 1
_SCOPE = "psrt"


class OtelSpan:
    """A span of OpenTelemetry; `TracedSpan` of `psrt.core.tracing`."""

    def __init__(self, span: Any) -> None:
        self.span = span

    @property
    def traceparent(self) -> str:
        context = self.span.get_span_context()
        return f"00-{context.trace_id:032x}-{context.span_id:016x}-01"

    def end(self, error: BaseException | None) -> None:
        if error is not None:
            self.span.record_exception(error)
            trace = required("opentelemetry.trace", "otel", "a trace")
            self.span.set_status(trace.Status(trace.StatusCode.ERROR, str(error)))
        self.span.end()


class OtelTracer:
    """Makes spans with a `TracerProvider`; traces the first of each `every` steps, 0 = none.

    Calls of traced callers are traced always. Steps count from 0, in this process.
    """

    def __init__(self, provider: Any, every: int) -> None:
        self._trace = required("opentelemetry.trace", "otel", "a trace")
        self._tracer = provider.get_tracer(_SCOPE, psrt.__version__)
        self._every, self._steps = every, itertools.count()
        kinds = self._trace.SpanKind
        self._kinds = {"internal": kinds.INTERNAL, "client": kinds.CLIENT, "server": kinds.SERVER}

    def first(self, name: str) -> OtelSpan | None:
        """See `Tracer.first`."""
        step = next(self._steps) if self._every else 1
        if not self._every or step % self._every:
            return None
        nothing = self._trace.set_span_in_context(self._trace.INVALID_SPAN)
        return OtelSpan(self._tracer.start_span(name, nothing, attributes={"psrt.step": step}))

    def begin(
        self, name: str, kind: tracing.Kind, parent: tracing.TracedSpan | str, facts: tracing.Facts
    ) -> OtelSpan | None:
        """See `Tracer.begin`."""
        above = parent.span if isinstance(parent, OtelSpan) else self._remote(str(parent))
        if above is None:
            return None
        context = self._trace.set_span_in_context(above)
        return OtelSpan(self._tracer.start_span(name, context, self._kinds[kind], dict(facts)))

    def _remote(self, traceparent: str) -> Any:
        """The span of another process, None for text that names none to be traced."""
        found = _TRACEPARENT.fullmatch(traceparent)
        if found is None or not int(found[3], 16) & _SAMPLED:
            return None
        context = self._trace.SpanContext(
            int(found[1], 16),
            int(found[2], 16),
            is_remote=True,
            trace_flags=self._trace.TraceFlags(_SAMPLED),
        )
        return self._trace.NonRecordingSpan(context) if context.is_valid else None


@contextmanager
def traces(
    role: str, is_on: bool, environ: Mapping[str, str], every: int = 0, **facts: str | int
) -> Iterator[None]:
    """Send spans of this process inside the block, if it is on.

    One of `every` steps is traced, 0 = none. `facts` are attributes of all spans. Raises
    `ConfigError` if `psrt-cluster[otel]` is not installed, or for a protocol not in `PROTOCOLS`.
    """
    if not is_on:
        yield
        return
    provider = _provider(role, environ, facts)
    tracing.set_tracer(OtelTracer(provider, every))
    follow("opentelemetry")
    log.info("traces are sent by OTLP")
    try:
        yield
    finally:
        tracing.set_tracer(None)
        # It sends the last spans, and may try for long if the collector does not answer.
        start_thread(provider.shutdown, "last spans", CrashReport()).join(FLUSH_S)


def _provider(role: str, environ: Mapping[str, str], facts: Mapping[str, str | int]) -> Any:
    sdk = required("opentelemetry.sdk.trace", "otel", "a trace")
    export = required("opentelemetry.sdk.trace.export", "otel", "a trace")
    resources = required("opentelemetry.sdk.resources", "otel", "a trace")
    sampling = required("opentelemetry.sdk.trace.sampling", "otel", "a trace")
    attributes = {f"psrt.{name}": value for name, value in facts.items()}
    if "OTEL_SERVICE_NAME" not in environ:
        attributes["service.name"] = f"psrt-{role}"
    provider = sdk.TracerProvider(
        resource=resources.Resource.create(attributes),
        sampler=sampling.ALWAYS_ON,
        shutdown_on_exit=False,
    )
    provider.add_span_processor(export.BatchSpanProcessor(_exporter(environ)))
    return provider


def _exporter(environ: Mapping[str, str]) -> Any:
    """The exporter of the protocol that the variables name; http/protobuf by default."""
    name = "OTEL_EXPORTER_OTLP_PROTOCOL"
    protocol = environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", environ.get(name, PROTOCOLS[1]))
    if protocol not in PROTOCOLS:
        raise ConfigError(
            f"{name} is {protocol!r}; no span was sent.",
            hint=f"Take one of {', '.join(PROTOCOLS)}.",
        )
    package = "opentelemetry.exporter.otlp.proto." + ("grpc" if protocol == "grpc" else "http")
    module = required(f"{package}.trace_exporter", "otel", "a trace")
    return module.OTLPSpanExporter()
