"""W1 inside the sandbox of services and outside of it, on sizes that say nothing about speed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.support import systemd_box


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.skipif(bool(systemd_box.missing()), reason=systemd_box.missing() or "runs")
def test_w1_trains_inside_the_sandbox_and_outside() -> None:
    command = [sys.executable, "-m", "benchmarks.sandbox", "--rounds", "1", "--seconds", "0.5"]
    ran = subprocess.run(command, cwd=systemd_box.ROOT, capture_output=True, text=True, timeout=350)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout.splitlines()[-1])

    assert found["inside"]["examples_per_s"] > 0
    assert found["outside"]["examples_per_s"] > 0
    assert found["exposures"].keys() == {"psrt-pserver", "psrt-trainer"}
