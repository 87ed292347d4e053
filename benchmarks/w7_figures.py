"""Medians of the rounds of W7, and of those rounds in which two cores were free.

A round maps what was measured to examples per second; `least_gemm_gain` says by how much bare
products gained by a second thread, the lesser of before and after. Nothing else decides whether a
round counts as free.
"""

from __future__ import annotations

import statistics

from benchmarks import harness

FREE = 1.85
RATIOS = {
    "share_of_gemm": ("one_thread", "gemm"),
    "share_of_gemm_two_threads": ("two_threads", "gemm_two_threads"),
    "speedup": ("two_threads", "one_thread"),
    "speedup_async": ("two_threads_async", "one_thread"),
    "speedup_of_gemm": ("gemm_two_threads", "gemm"),
}


def summary(rounds: list[dict[str, float]]) -> harness.Figures:
    """The medians; a round is as above. `examples_per_s` and `share_of_gemm`: one thread's."""
    free = [r for r in rounds if r["least_gemm_gain"] >= FREE]
    speeds = [name for name in rounds[0] if name != "least_gemm_gain"]
    medians = {name: round(statistics.median(r[name] for r in rounds)) for name in speeds}
    return {
        "examples_per_s": medians["one_thread"],
        "speeds": medians,
        "rounds": len(rounds),
        "free_rounds": len(free),
        **{name: _median(rounds, *pair) for name, pair in RATIOS.items()},
        **{f"{name}_free": _median(free, *pair) for name, pair in RATIOS.items()},
    }


def _median(rounds: list[dict[str, float]], over: str, under: str) -> float | None:
    """Of a ratio within rounds; None of no rounds."""
    return round(statistics.median(r[over] / r[under] for r in rounds), 3) if rounds else None
