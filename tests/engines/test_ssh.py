"""The engine `ssh` with a real server of OpenSSH: hosts that are wrong, lost, or share no files."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from psrt.core.errors import JobError
from tests.support.launched_job import Job
from tests.support.ssh_hosts import HOSTS


@pytest.fixture
def flags(ssh_flags: dict[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in ssh_flags.items()}


def test_a_host_without_a_server_is_named_and_nothing_is_started(
    flags: dict[str, str], job: Job
) -> None:
    job.behave()

    with pytest.raises(JobError, match=r"host 127\.0\.0\.9 cannot be reached by SSH"):
        job.launch(**{**flags, "hosts": f"{HOSTS[0]},127.0.0.9"})

    assert not (job.logs / "pserver.0.log").exists()


def test_a_host_whose_key_is_not_known_is_refused(
    flags: dict[str, str], job: Job, tmp_path: Path
) -> None:
    job.behave()
    known = Path(flags["ssh_config"]).with_name("known_hosts")
    config = Path(flags["ssh_config"]).read_text().replace(str(known), str(tmp_path / "none"))
    (tmp_path / "ssh_config").write_text(config)

    with pytest.raises(JobError, match="not found in known_hosts"):
        job.launch(**{**flags, "ssh_config": str(tmp_path / "ssh_config")})


def test_a_python_without_psrt_is_reported_in_the_words_of_the_host(
    flags: dict[str, str], job: Job
) -> None:
    job.behave()

    with pytest.raises(JobError, match="No such file") as failure:
        job.launch(python="/nowhere/python", **flags)

    assert "--python" in str(failure.value)


def test_processes_of_a_lost_host_fail_the_job_and_it_is_named(
    flags: dict[str, str], job: Job
) -> None:
    job.behave(trainer_0="wait", trainer_1="wait")

    def kill_runner(line: str) -> None:
        job.said.append(line)
        if "pservers serve on" in line:
            os.kill(runner_of(job, "pserver.1"), signal.SIGKILL)

    with pytest.raises(JobError, match=rf"host {HOSTS[1]} was lost"):
        job.launch_saying(kill_runner, **flags)


def test_files_of_the_job_are_sent_and_removed_at_the_end(
    flags: dict[str, str], job: Job, tmp_path: Path
) -> None:
    job.behave(trainer_0="tell", trainer_1="tell")

    job.launch(bring="*.json", save="model", **flags)

    told = job.report_of("trainer.1")
    assert Path(told["directory"]).name == "job"
    assert not Path(told["directory"]).exists()
    assert told["files"] == ["behaviour.json", "job.toml", "train.py"]
    assert told["argv"][-1] == "job.toml"
    assert told["argv"][told["argv"].index("--save") + 1] == str(Path.cwd() / "model")


def runner_of(job: Job, child: str) -> int:
    """The parent of a process, which is found by the ready file that is of its runner."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().decode().split("\0")
            status = (process / "status").read_text()
        except OSError:
            continue
        if str(job.path) in words and any(word.endswith(f"/{child}.json") for word in words):
            return int(status.split("PPid:")[1].split()[0])
    pytest.fail(f"{child} does not run")
