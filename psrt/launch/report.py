"""Results of a launch: the table on the terminal, the merged report, the failure.

Reports of trainers are read if they exist. Figures that a trainer could not measure are missing or
null, and left out of the sums.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from psrt.core.columns import aligned
from psrt.core.errors import CATALOGUE, JobError
from psrt.launch.children import Child
from psrt.launch.plan import LOOPBACK, TRAINER

_SUMS = ("examples_per_s", "examples", "steps")
_MEANS = ("loss", "train_auc", "auc")
_MEASURES = ("metrics", "test_metrics")
"""Metrics by name, in the report of a trainer: of the last epoch, and of the test."""
_TEXTS = (0, 4, 5)  # columns that are flush left
Report = Mapping[str, Any]


def merged(processes: Sequence[Child], exit_code: int, seconds: float) -> dict[str, Any]:
    """Return the launcher's report: totals, then each trainer's report, then each process."""
    reports = [_read(p) for p in processes if p.child.role == TRAINER]
    return {
        "exit_code": exit_code,
        "wall_seconds": seconds,
        **totals(reports),
        "trainers": reports,
        "processes": [_facts(process) for process in processes],
    }


def totals(reports: Iterable[Report]) -> dict[str, Any]:
    """Return sums of rates and counts, and means of all else, weighted by examples."""
    reports = [_flat(report) for report in reports]
    sums = {name: sum(numbers) for name in _SUMS if (numbers := _numbers(reports, name))}
    means = {name: _mean(reports, name) for name in _means_of(reports)}
    return {**sums, **{name: mean for name, mean in means.items() if mean is not None}}


def table(processes: Sequence[Child]) -> str:
    """Return a table of processes, with their hosts if there are others, and trainers' results."""
    hosts = {p.host for p in processes} - {LOOPBACK}
    rows = [("process", "pid", "exit", "seconds", "log", *(["host"] if hosts else []))]
    for p in processes:
        host = [p.host] if hosts else []
        rows.append((str(p.child), str(p.pid), str(p.code), f"{p.seconds:.1f}", p.log, *host))
    return "\n".join([*aligned(rows, _TEXTS), "", *aligned(_results(processes), (0,))]).rstrip()


def failure(process: Child) -> JobError:
    """Return the error of a launch that `process` failed."""
    lines = process.last_lines() or "(it wrote nothing)"
    is_shown = process.host == LOOPBACK or process.host in process.endpoint
    host = "" if is_shown else f"on {process.host}"
    who = ", ".join(filter(None, (process.endpoint, host, f"pid {process.pid}")))
    return JobError(
        f"{process.child} ({who}) {_ended(process.code or 0, process.seconds)}; "
        "psrt stopped the other processes.\n"
        f"last lines of {process.log}:\n{_indented(lines)}",
        hint=f"Read {process.log}, and the other logs in its directory.",
    )


def _ended(code: int, seconds: float) -> str:
    """`exited with code 60 (DEADLINE: a wait passed its deadline) after 3.5 s`."""
    after = f"after {seconds:.1f} s"
    if code < 0:
        note = " (often a sign of too little memory)" if -code == signal.SIGKILL else ""
        return f"was killed by {_name_of(-code)} {after}{note}"
    if code == 0:
        return f"ended too early, with code 0, {after}"
    known = [(c.name, spec.summary) for c, spec in CATALOGUE.items() if spec.exit_code == code]
    # Several codes share the exit code 2; then the number alone must do.
    meaning = f" ({known[0][0]}: {known[0][1]})" if len(known) == 1 else ""
    return f"exited with code {code}{meaning} {after}"


def _read(process: Child) -> dict[str, Any]:
    try:
        report = json.loads(process.command.result.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return report if isinstance(report, dict) else {}


def _facts(process: Child) -> dict[str, Any]:
    return {
        "role": process.child.role,
        "index": process.child.index,
        "host": process.host,
        "pid": process.pid,
        "exit_code": process.code,
        "seconds": process.seconds,
        "log": process.log,
    }


def _flat(report: Report) -> Report:
    """The report with its metrics beside its other figures, named as AUCs are."""
    trained, tested = (report.get(where) or {} for where in _MEASURES)
    return {**{f"train_{name}": value for name, value in trained.items()}, **tested, **report}


def _means_of(reports: Iterable[Report]) -> list[str]:
    """The figures that have a mean: loss, AUCs, and metrics in the order of the model."""
    known = {name for report in reports for where in _MEASURES for name in report.get(where) or ()}
    measured = dict.fromkeys(name for report in reports for name in _flat(report))
    known -= {*_SUMS, *_MEANS}
    return [*_MEANS, *(name for name in measured if name.removeprefix("train_") in known)]


def _numbers(reports: Iterable[Report], name: str) -> list[float]:
    return [r[name] for r in reports if isinstance(r.get(name), int | float)]


def _mean(reports: Iterable[Report], name: str) -> float | None:
    having = [r for r in reports if isinstance(r.get(name), int | float)]
    weights = [float(r.get("examples") or 1) for r in having]
    if not having:
        return None
    values = _numbers(having, name)
    return sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)


def _results(processes: Sequence[Child]) -> list[tuple[str, ...]]:
    trainers = [p for p in processes if p.child.role == TRAINER]
    reports: dict[str, Report] = {str(p.child): _read(p) for p in trainers}
    if not any(reports.values()):
        return []
    reports = {name: _flat(report) for name, report in reports.items()}
    reports["total"] = totals(reports.values())
    columns = list(reports["total"])
    rows = [("trainer", *columns)]
    return rows + [(name, *(_cell(r.get(c)) for c in columns)) for name, r in reports.items()]


def _cell(value: Any) -> str:
    if not isinstance(value, int | float):
        return "-"
    return f"{value:,.0f}" if isinstance(value, int) or value >= 10 else f"{value:.4f}"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def _name_of(number: int) -> str:
    """The name of a signal; Python has none for most real-time signals."""
    known = {each.value: each.name for each in signal.Signals}
    first = signal.SIGRTMIN
    between = f"SIGRTMIN+{number - first}" if number > first else f"signal {number}"
    return known.get(number, between)
