"""The local launcher over fake children: real processes, logs and signals, no psrt inside."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from psrt.core.errors import ConfigError, DeadlineError, ErrorCode, JobError
from psrt.launch import launching
from psrt.launch.plan import Plan
from tests.support.launched_job import FAKE, PROGRAM, Job

WAIT_S = 60.0


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def test_a_job_whose_processes_all_end_well_succeeds(job: Job) -> None:
    job.behave()

    code = job.launch()

    assert code == 0
    assert sorted(path.name for path in job.logs.glob("*.log")) == [
        "pserver.0.log",
        "pserver.1.log",
        "trainer.0.log",
        "trainer.1.log",
    ]


def test_only_the_progress_of_trainer_0_is_shown_and_its_log_has_both_streams(job: Job) -> None:
    job.behave()

    job.launch()

    assert "trainer 0 trained" in job.said
    assert "trainer 1 trained" not in job.said
    assert "trainer 0 trained" in (job.logs / "trainer.0.log").read_text()
    assert "trainer 0 logs" in (job.logs / "trainer.0.log").read_text()
    assert "trainer 1 trained" in (job.logs / "trainer.1.log").read_text()


def test_the_report_merges_the_trainers_reports(job: Job, tmp_path: Path) -> None:
    job.behave()
    report_file = tmp_path / "report.json"

    job.launch(report=str(report_file))

    report = json.loads(report_file.read_text())
    assert report["exit_code"] == 0
    assert report["examples_per_s"] == 100.0
    assert report["steps"] == 20
    assert report["examples"] == 300
    assert report["loss"] == pytest.approx((100 * 0.0 + 200 * 1.0) / 300)
    assert "auc" not in report
    assert [p["role"] for p in report["processes"]] == ["pserver"] * 2 + ["trainer"] * 2
    assert [trainer["examples"] for trainer in report["trainers"]] == [100, 200]


def test_the_closing_table_has_every_process_and_the_trainers_results(job: Job) -> None:
    job.behave()

    job.launch()

    cells = [line.split() for line in job.said[-1].splitlines()]
    assert [(row[0], row[2]) for row in cells[2:6]] == [
        ("pserver.0", "0"),
        ("pserver.1", "0"),
        ("trainer.0", "0"),
        ("trainer.1", "0"),
    ]
    assert ["trainer", "examples_per_s", "examples", "steps", "loss"] in cells
    assert ["trainer.1", "50", "200", "10", "1.0000"] in cells
    assert ["total", "100", "300", "20", "0.6667"] in cells


def within_a_launch(job: Job, action: Callable[[], object], **flags: object) -> int:
    """Launch a job, and call `action` once while it runs."""
    actions = [action]

    def say(line: str) -> None:
        job.said.append(line)
        if line.startswith("pservers serve") and actions:
            actions.pop()()

    return job.launch_saying(say, **flags)


def test_launches_in_one_directory_at_one_time_have_files_of_their_own(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    job.behave()
    monkeypatch.chdir(job.directory)
    other, codes = Job(job.directory), []

    codes.append(within_a_launch(job, lambda: codes.append(other.launch(log_dir="")), log_dir=""))

    runs = sorted(path for path in (job.directory / "runs").iterdir() if not path.is_symlink())
    assert codes == [0, 0]
    for run in runs:
        names = {path.name for path in run.iterdir()}
        assert {"report.json", "pserver.1.log", "trainer.0.report.json"} <= names
        assert "# trainer.1 on 127.0.0.1" in (run / "plan.txt").read_text()
    assert len(runs) == 2


def test_a_launch_into_the_directory_of_a_running_one_is_refused_and_removes_nothing(
    job: Job,
) -> None:
    job.behave()

    def launch_again() -> None:
        with pytest.raises(ConfigError, match=r"another launch runs in .*logs"):
            Job(job.directory).launch()
        assert (job.logs / "pserver.0.log").exists()

    assert within_a_launch(job, launch_again) == 0


def test_a_log_directory_that_cannot_be_made_is_named(job: Job, tmp_path: Path) -> None:
    job.behave()
    (tmp_path / "file").write_text("")

    with pytest.raises(ConfigError, match=r"launch\.log_dir needs .*file/logs"):
        job.launch(log_dir=str(tmp_path / "file" / "logs"))
    with pytest.raises(ConfigError, match=r"launch\.report needs .*/file'"):
        job.launch(report=str(tmp_path / "file" / "report.json"))


def test_a_report_that_is_a_directory_is_refused_before_anything_starts(job: Job) -> None:
    job.behave()

    with pytest.raises(ConfigError, match=r"--report .* cannot be written \(Is a directory\)"):
        job.launch(report=str(job.directory))
    assert job.said == []


@pytest.mark.parametrize("fails", [False, True])
def test_a_report_that_cannot_be_written_hides_no_error_of_a_child(job: Job, fails: bool) -> None:
    job.behave(**({"trainer_0": "wait", "trainer_1": "fail"} if fails else {}))
    report = job.directory / "report.json"

    def say(line: str) -> None:
        report.mkdir(exist_ok=True)
        job.said.append(line)

    with pytest.raises(JobError if fails else ConfigError) as caught:
        launching.run(job.loaded(report=str(report)), say=say, program=PROGRAM)

    assert ("trainer.1" if fails else "Is a directory") in caught.value.message
    assert "cannot be written (Is a directory)" in job.said[-1]


def test_a_mistake_in_the_job_is_told_before_anything_starts(job: Job) -> None:
    job.behave()
    job.write('[job]\nprogram = "gone.py"\n')

    with pytest.raises(ConfigError, match=r"gone\.py"):
        job.launch()

    assert not job.logs.exists()


def test_pservers_that_stay_are_terminated_after_the_grace_and_the_job_succeeds(job: Job) -> None:
    job.behave(pserver_0="stay", pserver_1="stay")

    code = job.launch(grace_s=0.2)

    assert code == 0
    assert "stopping pserver.0, pserver.1" in job.said


def test_a_failing_trainer_stops_the_rest_and_its_last_lines_are_shown(job: Job) -> None:
    job.behave(trainer_0="wait", trainer_1="fail")

    with pytest.raises(JobError) as failure:
        job.launch()

    assert failure.value.code is ErrorCode.CHILD_FAILED
    assert "trainer.1" in str(failure.value)
    assert "exited with code 60 (DEADLINE: a wait passed its deadline)" in str(failure.value)
    assert "line 29" in str(failure.value)
    assert "line 10\n" in str(failure.value)
    assert "line 9\n" not in str(failure.value)
    assert "stopping pserver.0, pserver.1, trainer.0" in job.said


def test_a_pserver_that_is_killed_fails_the_job(job: Job) -> None:
    job.behave(pserver_1="die", trainer_0="wait", trainer_1="wait")

    with pytest.raises(JobError, match=r"pserver\.1 \(127.* was killed by SIGKILL after"):
        job.launch()


def test_a_pserver_that_dies_before_it_is_ready_fails_the_job_at_once(job: Job) -> None:
    job.behave(pserver_1="crash", pserver_0="silent")

    with pytest.raises(JobError, match="no such device"):
        job.launch(ready_timeout_s=WAIT_S)

    assert not (job.logs / "trainer.0.log").exists()


def test_pservers_that_never_get_ready_are_named_and_stopped(job: Job) -> None:
    job.behave(pserver_1="silent")

    with pytest.raises(DeadlineError, match=r"pserver\.1 did not serve within 1 s"):
        job.launch(ready_timeout_s=1.0)


def test_an_interrupt_stops_all_children_and_gives_130(job: Job) -> None:
    job.behave(trainer_0="wait", trainer_1="interrupt")
    before = signal.getsignal(signal.SIGINT)

    code = job.launch()

    assert code == 128 + signal.SIGINT
    assert "stopping pserver.0, pserver.1, trainer.0, trainer.1" in job.said
    assert signal.getsignal(signal.SIGINT) is before


def test_a_child_that_ignores_the_request_to_end_is_killed_after_the_grace(job: Job) -> None:
    job.behave(trainer_0="wait", trainer_1="stubborn")

    code = job.launch(grace_s=0.2)

    assert code == 130
    # On a busy host others may not have ended within the grace either.
    assert any(line.startswith("killing") and "trainer.1" in line for line in job.said)


def test_files_of_an_earlier_run_are_not_taken_for_this_run(job: Job) -> None:
    job.behave(pserver_0="crash", pserver_1="crash")
    job.logs.mkdir()
    for index in range(2):
        (job.logs / f"pserver.{index}.ready.json").write_text('{"endpoint": "127.0.0.1:1"}')
    (job.logs / "trainer.0.report.json").write_text("{}")

    with pytest.raises(JobError):
        job.launch()

    assert not (job.logs / "trainer.0.log").exists()


def test_trainers_get_the_jobs_settings_unless_launch_was_given_others(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    job.write('[job]\nprogram = "train.py"\n[trainer]\ncarrier = "grpc"\ncpu_threads = 3\n')
    job.behave(trainer_0="tell", trainer_1="tell")

    job.launch(cpu_threads=2, mode="async", epochs=4)

    told = json.loads((job.logs / "trainer.1.report.json").read_text())
    assert told["argv"][told["argv"].index("--carrier") + 1] == "grpc"
    assert told["argv"][told["argv"].index("--cpu-threads") + 1] == "2"
    assert told["argv"][told["argv"].index("--trainer-id") + 1] == "1"
    assert told["OMP_NUM_THREADS"] == "2"
    assert told["PSRT_COMMUNICATION_MODE"] == "async"
    assert told["PSRT_DATA_EPOCHS"] == "4"


def test_further_flags_reach_every_pserver_and_every_trainer_unchanged(job: Job) -> None:
    flags = {"pserver_args": "--stripes 4 --unix-dir 'a b'", "trainer_args": "--cpu-num 3"}
    plan = Plan(job.loaded(**flags), {}, PROGRAM)

    pservers = plan.pservers(lambda child: f"10.0.0.{child.index}")
    trainers = plan.trainers(["a:1"])

    for command in pservers:
        words = list(command.arguments)
        at = words.index("--stripes")
        assert words[at : at + 4] == ["--stripes", "4", "--unix-dir", "a b"]
        assert words[words.index("--host") + 1] == f"10.0.0.{command.child.index}"
    assert all(command.arguments[-3:-1] == ("--cpu-num", "3") for command in trainers)


def test_each_process_gets_a_port_of_its_own_for_metrics(job: Job) -> None:
    numbered = Plan(job.loaded(metrics="127.0.0.1:9170", pservers=2), {}, PROGRAM)
    free = Plan(job.loaded(metrics="127.0.0.1:0"), {}, PROGRAM)

    assert metrics_of(numbered) == [f"127.0.0.1:{port}" for port in (9170, 9171, 9172, 9173)]
    assert set(metrics_of(free)) == {"127.0.0.1:0"}


def metrics_of(plan: Plan) -> list[str]:
    commands = [*plan.pservers(lambda child: "127.0.0.1"), *plan.trainers(["a:1"])]
    return [each.arguments[each.arguments.index("--metrics") + 1] for each in commands]


def test_an_address_of_metrics_without_a_port_is_refused(job: Job) -> None:
    with pytest.raises(ConfigError, match="not host:port"):
        job.loaded(metrics="9170")


def test_children_die_with_a_launcher_that_is_killed(job: Job) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(WAIT_S)
        job.behave(trainer_0="hold", trainer_1="hold", port=listener.getsockname()[1])
        launcher = subprocess.Popen([sys.executable, "-c", _LAUNCHER, str(job.path), str(FAKE)])
        held = [listener.accept()[0] for _ in range(2)]

        os.kill(launcher.pid, signal.SIGKILL)
        launcher.wait(WAIT_S)

        for connection in held:
            connection.settimeout(WAIT_S)
            assert connection.recv(1) == b""
            connection.close()


_LAUNCHER = """
import sys
from psrt.config.load import load
from psrt.config.sections import LaunchConfig
from psrt.launch import launching
job, fake = sys.argv[1:]
flags = {"job": job, "log_dir": job + ".logs"}
launching.run(load(LaunchConfig, flags=flags), say=print, program=(sys.executable, fake))
"""
