"""Spans of traces: the stops on a gradient's path, in a process that sends traces.

A tracer is set by `psrt.observe.traces`. Without one, and outside of a traced step, a span is one
shared object that does nothing. The span of a thread is the parent of those that it opens;
`carried` takes it along to another thread, `traceparent` to another process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from functools import partial, wraps
from typing import Any, Literal, ParamSpec, Protocol, TypeAlias, TypeVar

Kind: TypeAlias = Literal["internal", "client", "server"]
Facts: TypeAlias = Mapping[str, str | int | float]

_P = ParamSpec("_P")
_R = TypeVar("_R")


class TracedSpan(Protocol):
    """An open span; any thread may end it, once."""

    @property
    def traceparent(self) -> str:
        """Trace and span as W3C Trace Context has them: 00-<trace>-<span>-01."""
        ...

    def end(self, error: BaseException | None) -> None: ...


class Tracer(Protocol):
    """Makes spans; they are sent when they have ended."""

    def first(self, name: str) -> TracedSpan | None:
        """Begin a trace with the step that begins now, or return None: not every step is traced."""
        ...

    def begin(
        self, name: str, kind: Kind, parent: TracedSpan | str, facts: Facts
    ) -> TracedSpan | None:
        """Begin a span below another one, which may be the text of another process.

        Returns None if that text names no trace, or one that is not sent.
        """
        ...


_tracer: Tracer | None = None
_span: ContextVar[TracedSpan | None] = ContextVar("psrt_span", default=None)
_NOTHING = nullcontext()


def set_tracer(tracer: Tracer | None) -> None:
    """Let `tracer` make the spans of this process; None = no further spans."""
    global _tracer
    _tracer = tracer


def current() -> TracedSpan | None:
    """The span of the calling thread, or None."""
    return _span.get()


def traceparent() -> str:
    """The span of the calling thread for another process; empty without one."""
    span = _span.get()
    return "" if span is None else span.traceparent


def span(name: str, kind: Kind = "internal", **facts: str | int) -> AbstractContextManager[None]:
    """A span of the block inside a traced step; else nothing."""
    if _tracer is None or (parent := _span.get()) is None:
        return _NOTHING
    return _Opened(_tracer.begin(name, kind, parent, facts))


def span_of_call(name: str, parent: str, **facts: str | int) -> AbstractContextManager[None]:
    """A span of the block that handles a call, if the caller is traced: it named its span."""
    if _tracer is None or not parent:
        return _NOTHING
    return _Opened(_tracer.begin(name, "server", parent, facts))


def within(span: TracedSpan | None) -> AbstractContextManager[None]:
    """The block continues `span`, which another thread has begun and ends."""
    return _NOTHING if span is None else _Entered(span)


def carried(job: Callable[[], _R]) -> Callable[[], _R]:
    """`job` for another thread, where it continues the span of this one."""
    span = _span.get()
    return job if span is None else partial(_continued, span, job)


def no_facts(*args: Any, **kwargs: Any) -> Facts:
    """The facts of a span that has none."""
    return {}


def traced(
    name: str, facts: Callable[..., Facts] = no_facts
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """A decorator: each call is a span inside a traced step, with `facts` of its arguments."""

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        @wraps(function)
        def stopped(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            if _tracer is None or (parent := _span.get()) is None:
                return function(*args, **kwargs)
            with _Opened(_tracer.begin(name, "internal", parent, facts(*args, **kwargs))):
                return function(*args, **kwargs)

        return stopped

    return decorate


def first_traced(name: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """A decorator: each call is the first span of a trace, if the tracer samples it."""

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        @wraps(function)
        def stopped(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            if _tracer is None or (first := _tracer.first(name)) is None:
                return function(*args, **kwargs)
            with _Opened(first):
                return function(*args, **kwargs)

        return stopped

    return decorate


class _Entered:
    """The span of the calling thread during a block."""

    def __init__(self, span: TracedSpan | None) -> None:
        self._span = span

    def __enter__(self) -> None:
        self._token = _span.set(self._span)

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        _span.reset(self._token)


class _Opened(_Entered):
    """A span that ends with the block."""

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        super().__exit__(kind, error, trace)
        if self._span is not None:
            self._span.end(error)


def _continued(span: TracedSpan, job: Callable[[], _R]) -> _R:
    with within(span):
        return job()
