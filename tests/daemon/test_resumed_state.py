"""A trainer goes on from its state only with pservers whose tables have what it trained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from psrt.core.errors import CATALOGUE, ErrorCode
from tests.support.processes import psrt
from tests.support.pserver import DaemonProcess, daemon
from tests.support.small_job import BATCH, lines, write_files

STEPS = 4


def trained(job: Path, pserver: DaemonProcess, name: str, *flags: str) -> tuple[int, str]:
    """Exit code and output of a trainer of `job`."""
    given = "--endpoints", pserver.endpoint, "--connect-timeout-s", "20", *flags, str(job)
    with psrt(job.parent / f"{name}.log", "trainer", *given) as trainer:
        return trainer.exit_code(), trainer.output


@pytest.mark.parametrize("mode", ["sync", "async", "geo"])
def test_a_state_is_refused_by_pservers_that_were_never_trained(tmp_path: Path, mode: str) -> None:
    job = write_files(tmp_path, [lines(BATCH * STEPS, seed=1)], mode)
    state = tmp_path / "at.json"
    with daemon(tmp_path, "--stay") as trained_one:
        assert trained(job, trained_one, "first", "--state", str(state))[0] == 0
        assert json.loads(state.read_text())["steps"] == STEPS
        job.write_text(job.read_text().replace("epochs = 1", "epochs = 2"))

        code, output = trained(job, trained_one, "second", "--resume", str(state))
        assert code == 0, output
        assert f"step {STEPS}  " in output

    (tmp_path / "empty").mkdir()
    with daemon(tmp_path / "empty") as empty:
        code, output = trained(job, empty, "third", "--resume", str(state))

    assert code == CATALOGUE[ErrorCode.CONFIG_INVALID].exit_code, output
    assert f"--resume {state} goes on after {STEPS} steps" in output
    assert "initial values" in output
