"""Spans: nothing without a tracer, parents by thread, hand-over to threads and processes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from psrt.core import tracing
from psrt.core.tracing import Facts, Kind, TracedSpan


@dataclass(eq=False)
class Noted:
    name: str
    parent: TracedSpan | str | None
    facts: Facts = field(default_factory=dict)
    kind: Kind = "internal"
    ends: list[BaseException | None] = field(default_factory=list)

    @property
    def traceparent(self) -> str:
        return f"text of {self.name}"

    def end(self, error: BaseException | None) -> None:
        self.ends.append(error)


class Notes:
    """A tracer that keeps its spans."""

    def __init__(self, every: int = 1) -> None:
        self.spans: list[Noted] = []
        self.every, self.steps = every, 0

    def first(self, name: str) -> Noted | None:
        self.steps += 1
        return self._keep(Noted(name, None)) if self.steps % self.every == 0 else None

    def begin(self, name: str, kind: Kind, parent: TracedSpan | str, facts: Facts) -> Noted | None:
        return None if parent == "garbage" else self._keep(Noted(name, parent, facts, kind))

    def _keep(self, span: Noted) -> Noted:
        self.spans.append(span)
        return span

    def by_name(self, name: str) -> Noted:
        (found,) = (span for span in self.spans if span.name == name)
        return found


@pytest.fixture
def notes() -> Iterator[Notes]:
    made = Notes()
    tracing.set_tracer(made)
    yield made
    tracing.set_tracer(None)


@tracing.traced("inner")
def inner(value: int) -> int:
    return value + 1


@tracing.first_traced("step")
def step(value: int) -> int:
    return inner(value)


def test_without_a_tracer_functions_and_blocks_do_what_they_did() -> None:
    with tracing.span("a"), tracing.span_of_call("b", "text"):
        assert tracing.current() is None

    assert step(1) == 2
    assert tracing.traceparent() == ""


def test_a_span_outside_of_a_traced_step_is_none(notes: Notes) -> None:
    with tracing.span("alone"):
        inner(1)

    assert notes.spans == []


def test_the_span_of_a_thread_is_the_parent_of_those_inside(notes: Notes) -> None:
    assert step(1) == 2

    outer, within = notes.spans
    assert (outer.name, within.name) == ("step", "inner")
    assert within.parent is outer
    assert (outer.ends, within.ends) == ([None], [None])
    assert tracing.current() is None


def test_steps_that_are_not_sampled_have_no_spans_inside() -> None:
    notes = Notes(every=3)
    tracing.set_tracer(notes)
    for _ in range(6):
        step(1)
    tracing.set_tracer(None)

    assert [span.name for span in notes.spans] == ["step", "inner"] * 2


def test_a_span_ends_with_the_error_of_its_block(notes: Notes) -> None:
    @tracing.first_traced("step")
    def fails() -> None:
        with tracing.span("inner", "client", table="emb"):
            raise ValueError("no such row")

    with pytest.raises(ValueError, match="no such row"):
        fails()

    within = notes.by_name("inner")
    assert isinstance(within.ends[0], ValueError)
    assert (within.kind, within.facts) == ("client", {"table": "emb"})
    assert tracing.current() is None


def test_a_job_for_another_thread_continues_the_span(notes: Notes) -> None:
    @tracing.first_traced("step")
    def hands_over() -> None:
        job = tracing.carried(lambda: inner(1))
        thread = threading.Thread(target=job)
        thread.start()
        thread.join()

    hands_over()

    assert notes.by_name("inner").parent is notes.by_name("step")


def test_without_a_span_a_job_is_handed_over_as_it_is() -> None:
    job = threading.get_ident

    assert tracing.carried(job) is job


def test_a_call_of_a_traced_caller_is_a_span_below_it(notes: Notes) -> None:
    with tracing.span_of_call("serve", "text of another process", method="PULL"):
        inner(1)
    with tracing.span_of_call("serve", ""):
        inner(1)

    served, within = notes.spans
    assert (served.parent, served.kind) == ("text of another process", "server")
    assert within.parent is served


def test_a_caller_that_names_no_trace_is_not_traced(notes: Notes) -> None:
    with tracing.span_of_call("serve", "garbage"):
        inner(1)

    assert notes.spans == []


def test_a_thread_continues_a_span_that_another_one_ends(notes: Notes) -> None:
    span = Noted("step", None)

    with tracing.within(span):
        assert tracing.traceparent() == "text of step"
        inner(1)

    assert notes.by_name("inner").parent is span
    assert span.ends == []
