"""One plan, one supervision and one report by every engine, with processes of `fake_psrt`."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from psrt.core.errors import DeadlineError, JobError
from tests.support.launched_job import FAKE, Job

Flags = dict[str, str]
WAIT_S = 60.0


def test_a_job_succeeds_and_its_logs_and_reports_arrive_in_one_place(
    on: Flags, job: Job, tmp_path: Path
) -> None:
    job.behave()

    code = job.launch(report=str(tmp_path / "report.json"), **on)

    report = json.loads((tmp_path / "report.json").read_text())
    assert code == 0
    assert (report["steps"], report["examples"], report["examples_per_s"]) == (20, 300, 100.0)
    assert [p["exit_code"] for p in report["processes"]] == [0] * 4
    assert all(p["pid"] > 0 and p["host"] for p in report["processes"])
    assert "trainer 0 trained" in job.said
    assert "trainer 1 trained" not in job.said
    assert "trainer 0 logs" in (job.logs / "trainer.0.log").read_text()
    assert "trainer 1 trained" in (job.logs / "trainer.1.log").read_text()


def test_processes_get_the_plans_variables_and_the_launchers_settings(
    on: Flags, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    job.behave(trainer_0="tell", trainer_1="tell")

    job.launch(mode="async", epochs=4, **on)

    told = json.loads((job.logs / "trainer.1.report.json").read_text())
    assert told["argv"][told["argv"].index("--trainer-id") + 1] == "1"
    assert told["OMP_NUM_THREADS"] == "3"
    assert told["PSRT_COMMUNICATION_MODE"] == "async"
    assert told["PSRT_DATA_EPOCHS"] == "4"


def test_a_failing_trainer_is_named_with_host_exit_code_and_last_lines(on: Flags, job: Job) -> None:
    job.behave(trainer_0="wait", trainer_1="fail")

    with pytest.raises(JobError) as failure:
        job.launch(**on)

    text = str(failure.value)
    assert "trainer.1 (on " in text or "trainer.1 (pid" in text
    assert "exited with code 60 (DEADLINE: a wait passed its deadline)" in text
    assert "line 29" in text
    assert "line 9\n" not in text
    assert any(line.startswith("stopping ") for line in job.said)


def test_a_pserver_that_is_killed_fails_the_job(on: Flags, job: Job) -> None:
    job.behave(pserver_1="die", trainer_0="wait", trainer_1="wait")

    with pytest.raises(JobError, match=r"pserver\.1 \(.* was killed by SIGKILL after"):
        job.launch(**on)


def test_pservers_that_never_get_ready_are_named_and_stopped(on: Flags, job: Job) -> None:
    job.behave(pserver_1="silent")

    with pytest.raises(DeadlineError, match=r"pserver\.1 did not serve within 15 s"):
        job.launch(ready_timeout_s=15.0, **on)


def test_an_interrupt_stops_all_processes_and_gives_130(on: Flags, job: Job) -> None:
    job.behave(trainer_0="wait", trainer_1="interrupt")

    code = job.launch(**on)

    assert code == 128 + signal.SIGINT
    assert "stopping pserver.0, pserver.1, trainer.0, trainer.1" in job.said


def test_a_process_that_ignores_the_request_to_end_is_killed(on: Flags, job: Job) -> None:
    job.behave(trainer_0="wait", trainer_1="stubborn")

    code = job.launch(grace_s=0.2, **on)

    assert code == 130
    # On a busy host others may not have ended within the grace either.
    assert any(each.startswith("killing") and "trainer.1" in each for each in job.said)


def test_processes_end_with_a_launcher_that_is_killed(
    on: Flags, job: Job, request: pytest.FixtureRequest
) -> None:
    if "pipe" in request.node.name:
        pytest.skip("another process has no engine of tests")
    if "kubernetes" in request.node.name:
        pytest.skip("pods of Kubernetes go on without their launcher")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(WAIT_S)
        job.behave(trainer_0="hold", trainer_1="hold", port=listener.getsockname()[1])
        flags = {"job": str(job.path), "log_dir": str(job.logs), **on}
        launcher = subprocess.Popen([sys.executable, "-c", _LAUNCHER, json.dumps(flags), str(FAKE)])
        held = [listener.accept()[0] for _ in range(2)]

        os.kill(launcher.pid, signal.SIGKILL)
        launcher.wait(WAIT_S)

        for connection in held:
            connection.settimeout(WAIT_S)
            assert connection.recv(1) == b""
            connection.close()


_LAUNCHER = """
import json, sys
from psrt.config.load import load
from psrt.config.sections import LaunchConfig
from psrt.launch import launching
flags, fake = json.loads(sys.argv[1]), sys.argv[2]
loaded = load(LaunchConfig, flags=flags, file=flags["job"])
launching.run(loaded, say=print, program=(sys.executable, fake))
"""
