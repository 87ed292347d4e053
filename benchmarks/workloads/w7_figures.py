"""Medians of the rounds of W7, and of its rounds on two free cores.

A round maps names of measurements to examples per second. Its `least_gemm_gain` is the speed-up of
bare matrix products by a second thread, the lesser of before and after. It alone decides whether a
round counts as free.
"""

from __future__ import annotations

import statistics

from benchmarks.measuring import harness

FREE = 1.85
RATIOS = {
    "share_of_gemm": ("one_thread", "gemm"),
    "share_of_gemm_two_threads": ("two_threads", "gemm_two_threads"),
    "speedup": ("two_threads", "one_thread"),
    "speedup_async": ("two_threads_async", "one_thread"),
    "speedup_of_gemm": ("gemm_two_threads", "gemm"),
}


def summary(rounds: list[dict[str, float]]) -> harness.Figures:
    """Medians over all and over free rounds; `examples_per_s` is the speed of one thread."""
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
    """The median ratio of two speeds within rounds; None without rounds."""
    return round(statistics.median(r[over] / r[under] for r in rounds), 3) if rounds else None
