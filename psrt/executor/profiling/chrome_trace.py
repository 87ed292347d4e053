"""A profile as a timeline: Chrome's Trace Event Format, for chrome://tracing and ui.perfetto.dev.

Every event is a "complete" one (phase X); viewers nest the events of a thread by time. Times are
those of the monotonic clock, not relative to the start, so that timelines of several trainers of
one host align.
Format: Trace Event Format, Google, 2016, sections "Complete Events" and "Metadata Events".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from psrt.core import whole_file
from psrt.core.errors import ConfigError
from psrt.executor.profiling.costs import Label

Event: TypeAlias = tuple[int, int, int, int, int, int]
"""(label number, start in ns, end in ns, replica, step, thread number)."""


def write(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write a complete trace or none; raises `ConfigError` when the file cannot be written."""
    try:
        with whole_file.writing(path) as out:
            out.write('{"displayTimeUnit": "ms", "traceEvents": [\n')
            for number, record in enumerate(records):
                out.write(",\n" if number else "")
                out.write(json.dumps(record, ensure_ascii=False))
            out.write("\n]}\n")
    except OSError as error:
        raise ConfigError(
            f"the profile {path} cannot be written ({error.strerror}).",
            hint="Name a file in a directory that exists and may be written.",
        ) from error


def records(
    events: Iterable[Event], labels: Sequence[Label], threads: Sequence[str], process: int
) -> Iterator[dict[str, Any]]:
    """Records of the process and thread names, then one record per event."""
    yield _named("process_name", process, 0, f"trainer {process}")
    for number, name in enumerate(threads):
        yield _named("thread_name", process, number, name)
    for label, started_ns, ended_ns, replica, step, thread in events:
        what = labels[label]
        where = {"layer": what.layer, "line": what.origin, "replica": replica}
        yield {
            "ph": "X",
            "name": what.name,
            "cat": what.category,
            "ts": started_ns / 1e3,
            "dur": (ended_ns - started_ns) / 1e3,
            "pid": process,
            "tid": thread,
            "args": {**(where if what.is_op else {}), "step": step},
        }


def _named(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": {"name": name}}
