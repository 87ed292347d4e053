"""One report for those who look into a job that hangs: findings, waits, pservers and stacks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from psrt.core.quantities import format_bytes
from psrt.doctor.findings import Finding
from psrt.doctor.processes import ProcessReport
from psrt.status import ClusterFacts, StatusReport, waits


def dump(
    at: datetime,
    version: str,
    findings: Sequence[Finding],
    facts: ClusterFacts | None,
    processes: Iterable[ProcessReport],
    roles: Mapping[int, str],
) -> Iterator[str]:
    """Lines of the report.

    `facts` are those of the job, if one was named, and `roles` the endpoints of its pservers on
    this host by the number of their process.
    """
    moment = at.astimezone(UTC).isoformat(timespec="seconds")
    yield f"psrt doctor --dump on {os.uname().nodename} at {moment}, psrt {version}"
    yield from _section("Findings", [*map(str, findings)] or ["none"])
    if facts is not None:
        yield from _section("Who waits for whom", [*map(str, waits(facts))] or ["nobody"])
        yield from _section("The job", StatusReport.of(facts).lines())
    described = [line for each in processes for line in _process(each, roles)]
    yield from _section("Processes of psrt on this host", described or ["none"])


def _section(title: str, lines: Sequence[str]) -> Iterator[str]:
    yield from ("", f"## {title}", "", *lines)


def _process(found: ProcessReport, roles: Mapping[int, str]) -> Iterator[str]:
    role = f", the pserver {roles[found.pid]}" if found.pid in roles else ""
    memory = format_bytes(found.memory_bytes)
    yield f"process {found.pid}{role}: {found.command}"
    yield f"  state {found.state}, {found.threads} threads, {memory} of memory"
    yield from (f"  {line}" for line in (found.stacks or found.problem).splitlines())
    yield ""
