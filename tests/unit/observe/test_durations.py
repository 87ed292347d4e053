"""Histograms of durations: counted by many threads, merged when threads have ended."""

from __future__ import annotations

import threading

from psrt.observe.durations import BOUNDS_S, Durations


def test_a_duration_is_counted_in_the_bucket_of_its_bound() -> None:
    durations = Durations()

    for seconds in (BOUNDS_S[0], 60e-6, 1e9):
        durations.add("PULL", seconds)

    counts = durations.totals()["PULL"].counts
    assert (counts[0], counts[1], counts[-1]) == (1, 1, 1)
    assert sum(counts) == 3


def test_no_count_of_many_threads_is_lost_and_ended_threads_are_merged() -> None:
    durations = Durations()

    def count() -> None:
        for _ in range(1000):
            durations.add("PUSH", 0.001)

    for _ in range(3):
        threads = [threading.Thread(target=count) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert sum(durations.totals()["PUSH"].counts) == 12_000
    assert abs(durations.totals()["PUSH"].sum_s - 12.0) < 1e-6
    assert len(durations._running) <= 5
