"""Steps during cuts are compared with those of as long a time before each."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.cuts_while_training.spans import SETTLED_S, Cut, figures

STEADY = np.arange(0.0, 30.0, 0.125).tolist()


def test_the_quiet_time_is_as_long_as_the_cut() -> None:
    busy, quiet = Cut(quiet_from=0.0, begun=10.0, ended=12.0).spans([STEADY])

    assert (busy.seconds, quiet.seconds) == (2.0, 2.0)
    assert len(busy.steps) == len(quiet.steps) == 16


def test_the_quiet_time_begins_some_time_after_the_cut_before() -> None:
    _, quiet = Cut(quiet_from=9.0, begun=10.0, ended=12.0).spans([STEADY])

    assert quiet.seconds == 1.0 - SETTLED_S


def test_a_cut_that_delays_one_step_is_seen_in_its_figures() -> None:
    paused = [each for each in STEADY if not 10.5 <= each < 11.0]

    found = figures([Cut(0.0, 10.0, 12.0)], [STEADY, paused])

    assert found["step_ms"]["quiet"] == {"p50": 125.0, "p99": 125.0, "longest": 125.0, "steps": 32}
    assert found["step_ms"]["cut"]["longest"] == 625.0
    assert found["longest_extra_ms"] == {"median": 500.0, "worst": 500.0}
    assert found["throughput_share"] == pytest.approx(28 / 32, abs=1e-3)
    assert found["extra_p99_ms"] > 0


def test_cuts_without_a_quiet_time_are_refused() -> None:
    with pytest.raises(ValueError, match="quiet time"):
        figures([Cut(9.9, 10.0, 12.0)], [STEADY])


def test_cpu_time_of_steps_is_that_of_all_processes() -> None:
    cut = Cut(0.0, 10.0, 12.0, settled=6.0, cpu_s=(1.0, 2.6, 3.4))

    found = figures([cut], [STEADY, STEADY])

    assert found["cpu_ms_per_step"] == {"cut": 25.0, "quiet": 25.0}
    assert found["cpu_share"] == 1.0
