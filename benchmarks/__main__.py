"""Runs workloads and prints their figures as a table, with limits of this machine.

    python -m benchmarks [WORKLOAD…] [--quick] [--repeat N] [--json FILE]

WORKLOAD: w1 to w8 and latency run by default; rows_by_size and stress run when named. Each is a
process of its own (`python -m benchmarks.w2_rows --help`, and so on). The limits are measured in
the same run. With `--quick` all workloads take a few minutes; such figures are not for quoting.
`--json` writes all measurements to a file. With `--repeat` the table shows medians.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks.measuring import harness
from benchmarks.measuring.registry import LIMITS, RUNS, SHOWN, UNLESS_NAMED, Figures, Run, Shown

TIMEOUT_S = 3600.0


def main() -> None:
    parser = parser_of()
    args = parser.parse_args()
    if unknown := set(args.workloads) - set(workloads()):
        parser.error(f"there is no workload {min(unknown)}; there are {', '.join(workloads())}")
    wanted = args.workloads or [name for name in workloads() if name not in UNLESS_NAMED]
    found: Figures = {LIMITS: measured(LIMITS, [])}
    print(limits_text(found[LIMITS]))
    for run in RUNS:
        if run.workload in wanted:
            flags = run.flags.split() + run.quick.split() * args.quick
            figures = measured(run.module, [*flags, *repeats(run, args.repeat)])
            found[key_of(run)] = figures
            for line in lines(run, figures, found[LIMITS]):
                print(line, flush=True)
            if args.json:
                Path(args.json).write_text(json.dumps(found, indent=1))


def workloads() -> list[str]:
    return list(dict.fromkeys(run.workload for run in RUNS))


def key_of(run: Run) -> str:
    """The name of a run in the JSON: `w2 Zipf ids`."""
    return f"{run.workload} {run.what}".strip()


def repeats(run: Run, count: int) -> list[str]:
    return [f"--repeat={count}"] if count > 1 and run.workload != "stress" else []


def measured(module: str, flags: list[str]) -> Figures:
    print(f"… {module} {' '.join(flags)}", file=sys.stderr, flush=True)
    return harness.figures_of(harness.start(module, flags), TIMEOUT_S)


# --- the table ------------------------------------------------------------------------------------


def limits_text(limits: Figures) -> str:
    return (
        f"this machine: memcpy {limits['memcpy_gb_per_s']} GB/s, two threads "
        f"{limits['memcpy_2_threads_gb_per_s']}; loopback socket {limits['socket_mb_per_s']} MB/s, "
        f"{limits['socket_round_trip_us']} µs there and back; BLAS {limits['blas_gflops']} GFLOP/s"
    )


def lines(run: Run, figures: Figures, limits: Figures) -> list[str]:
    """The lines of the table for one run."""
    return [line(run, shown, plain(figures), limits) for shown in SHOWN.get(run.workload, ())]


def line(run: Run, shown: Shown, figures: Figures, limits: Figures) -> str:
    value = at(figures, shown.path)
    what = f"{run.workload.upper() if run.workload[0] == 'w' else run.workload} {shown.what}"
    text = f"{f'{what}, {run.what}'.rstrip(', '):46}{number(value):>12} {shown.unit:11}"
    if shown.limit is None or value is None:
        return text.rstrip()
    limit = shown.limit.of(figures, limits)
    return f"{text}{value / limit:7.2f} of {number(limit)}: {shown.limit.name}"


def at(figures: Figures, path: str) -> float | None:
    """The number at a path, or None: `at({"a": {"b": 1}}, "a.b")` is 1."""
    found: object = figures
    for key in path.split("."):
        found = found.get(key) if isinstance(found, dict) else None
    return float(found) if isinstance(found, int | float) else None


def plain(figures: Figures) -> Figures:
    """Figures with medians in place of spreads."""
    return {key: _plain(value) for key, value in figures.items()}


def _plain(value: object) -> object:
    if not isinstance(value, dict):
        return value
    return value["median"] if set(value) == {"min", "median", "max"} else plain(value)


def number(value: float | None) -> str:
    """A number with three digits or more: 0.25, 12.3, 456, 7,890."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def parser_of() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    names = ", ".join(workloads())
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=names)
    parser.add_argument("--quick", action="store_true", help="shorter runs")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="runs of each")
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    return parser


if __name__ == "__main__":
    main()
