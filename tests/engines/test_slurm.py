"""The engine `slurm`: the batch script as text, and jobs of a real cluster of Slurm."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from psrt.config.load import load
from psrt.config.sections import LaunchConfig
from psrt.core.errors import ConfigError, JobError
from psrt.launch import launching
from psrt.launch.engines.slurm import Allocation, Node, srun_line
from psrt.launch.engines.slurm_job import batch_script
from psrt.launch.plan import PSERVER, TRAINER, ChildId, Plan
from tests.support import small_job
from tests.support.launched_job import PROGRAM, Job
from tests.support.saved_models import model_of

SCRIPT = """\
#!/bin/bash
#SBATCH --job-name=job
#SBATCH --output=logs/slurm-%j.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:USR1@120
#SBATCH --ntasks=2
#SBATCH --time 1:00:00
#SBATCH --comment='a b'
#SBATCH hetjob
#SBATCH --requeue
#SBATCH --ntasks=3
#SBATCH --cpus-per-task=4
#SBATCH --time 1:00:00
#SBATCH --comment='a b'
trap '' USR1  # until psrt handles it
resume=--resume=3
[ "${SLURM_RESTART_COUNT:-0}" -gt 0 ] && resume=--resume=auto
exec python3 -m psrt launch --on=slurm --python=python3 --trainers=3 --log-dir=logs \
--cpu-threads=2 --cpu-num=2 \
--checkpoint-dir=cuts --no-standby $resume JOB"""


def plan_of(job: Job, **flags: object) -> Plan:
    given = {"job": str(job.path), "on": "slurm", "log_dir": "logs", **flags}
    loaded = load(LaunchConfig, flags=given, file=str(job.path), environ={})
    return Plan(loaded, {}, PROGRAM)


def test_the_script_asks_for_two_components_and_runs_the_launch_within_the_job(job: Job) -> None:
    sizes = {"trainers": 3, "cpu_threads": 2, "cpu_num": 2, "python": "python3", "standby": False}
    cuts = {"checkpoint_dir": "cuts", "resume": "3"}
    slurm = "--time 1:00:00 --comment='a b'"

    script = batch_script(plan_of(job, slurm=slurm, **sizes, **cuts))

    assert script == SCRIPT.replace("JOB", str(job.path))


def test_a_job_without_cuts_is_not_told_of_its_limit_and_begins_anew(job: Job) -> None:
    script = batch_script(plan_of(job))

    assert "--signal" not in script
    assert "RESTART_COUNT" not in script
    assert "#SBATCH --requeue" in script


def fake_slurm(words: Sequence[str]) -> str:
    """The answers of `scontrol` for node lists such as n[1-2]."""
    first, last = re.fullmatch(r"n\[(\d)-(\d)\]", words[-1]).groups()
    return "".join(f"n{node}\n" for node in range(int(first), int(last) + 1))


def test_components_of_a_job_have_pservers_and_trainers_on_nodes_of_their_own(job: Job) -> None:
    environ = {
        "SLURM_HET_SIZE": "2",
        "SLURM_JOB_NODELIST_HET_GROUP_0": "n[1-2]",
        "SLURM_TASKS_PER_NODE_HET_GROUP_0": "1(x2)",
        "SLURM_JOB_NODELIST_HET_GROUP_1": "n[2-3]",
        "SLURM_TASKS_PER_NODE_HET_GROUP_1": "2,1",
    }
    allocation = Allocation(plan_of(job, trainers=3), environ, fake_slurm)

    nodes = [allocation.node(ChildId(TRAINER, index)) for index in range(4)]

    assert allocation.node(ChildId(PSERVER, 1)) == Node("n2", 0)
    assert nodes == [Node("n2", 1), Node("n3", 1), Node("n2", 1), Node("n2", 1)]
    assert allocation.nodes == [Node("n1", 0), Node("n2", 0), Node("n2", 1), Node("n3", 1)]


def test_an_allocation_without_components_is_shared(job: Job) -> None:
    environ = {"SLURM_JOB_NODELIST": "n[1-2]", "SLURM_TASKS_PER_NODE": "3,1"}

    allocation = Allocation(plan_of(job), environ, fake_slurm)

    assert allocation.node(ChildId(PSERVER, 1)) == Node("n2")
    assert allocation.node(ChildId(TRAINER, 1)) == Node("n1")


def test_too_few_tasks_are_an_error_before_anything_starts(job: Job) -> None:
    environ = {"SLURM_JOB_NODELIST": "n[1-2]", "SLURM_TASKS_PER_NODE": "1(x2)"}

    with pytest.raises(ConfigError, match=r"4 processes need as many tasks .* has 2"):
        Allocation(plan_of(job), environ, fake_slurm)


def test_a_step_names_its_component_and_node(job: Job) -> None:
    line = " ".join(srun_line(plan_of(job, python="python3"), Node("n2", 1)))

    assert line == (
        "srun --het-group=1 --nodes=1 --ntasks=1 --nodelist=n2 --overlap --cpu-bind=none "
        "--job-name=psrt python3 -m psrt.launch.runners"
    )


# --- a real cluster -------------------------------------------------------------------------------


@pytest.fixture
def cluster(slurm_conf: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("SLURM_CONF", str(slurm_conf))
    yield
    for job in jobs():
        command("scancel", job)


class Submitted:
    """A small job on a cluster; at a line of its log with `word` it calls `act` once."""

    def __init__(self, directory: Path, epochs: int = 1) -> None:
        rows = small_job.lines(640, seed=7)
        job = small_job.write_files(directory / "job", [rows[:320], rows[320:]], epochs=epochs)
        self.job, self.directory = job, directory
        self.word, self.said = "", []
        self.act = lambda: None

    def launch(self, name: str, **flags: object) -> int:
        directory = self.directory / name
        own = {"log_dir": directory / "logs", "save": directory / "model"}
        own |= {"report": directory / "report.json"}
        given = {name: str(value) for name, value in own.items()}
        loaded = load(
            LaunchConfig, flags={"job": str(self.job), **given, **flags}, file=str(self.job)
        )
        return launching.run(loaded, say=self._say)

    def _say(self, line: str) -> None:
        self.said.append(line)
        if self.word and self.word in line:
            self.word = ""
            self.act()


@pytest.mark.slow
def test_a_submitted_job_is_followed_to_its_end(cluster: None, tmp_path: Path) -> None:
    submitted = Submitted(tmp_path)

    code = submitted.launch("run", on="slurm", slurm="--time=10")

    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert code == 0
    assert [each["exit_code"] for each in report["processes"]] == [0] * 4
    assert {each["host"] for each in report["processes"]} <= {f"n{node}" for node in range(1, 5)}
    assert any(line.startswith("job small: trainer 0 of 2") for line in submitted.said)


@pytest.mark.long
def test_a_job_at_its_limit_makes_a_cut_and_goes_on_from_it_with_the_same_bits(
    cluster: None, tmp_path: Path
) -> None:
    submitted = Submitted(tmp_path, epochs=60)
    submitted.launch("whole")
    submitted.word = "epoch"

    def near_the_limit() -> None:
        submitted.word, submitted.act = "is queued again", again
        command("scancel", "--batch", "--signal=USR1", jobs()[0])

    def again() -> None:
        job = jobs()[0]
        while "PENDING" not in command("squeue", "--noheader", "--format=%T", f"--jobs={job}"):
            pass
        for component in range(2):
            command("scontrol", "update", f"job={job}+{component}", "StartTime=now")

    submitted.act = near_the_limit
    cuts = str(tmp_path / "cuts")

    code = submitted.launch("twice", on="slurm", slurm="--time=10", checkpoint_dir=cuts)

    log = "\n".join(submitted.said)
    assert code == 0
    assert "leaves at cut" in log
    assert log.count("pservers serve on") == 3
    whole, twice = model_of(tmp_path / "whole" / "model"), model_of(tmp_path / "twice" / "model")
    assert whole.keys() == twice.keys()
    assert [name for name in whole if not np.array_equal(whole[name], twice[name])] == []


@pytest.mark.slow
def test_an_interrupt_ends_the_job(cluster: None, tmp_path: Path) -> None:
    submitted = Submitted(tmp_path, epochs=100_000)
    submitted.word = "epoch"
    submitted.act = lambda: os.kill(os.getpid(), signal.SIGINT)

    code = submitted.launch("run", on="slurm", slurm="--time=10")

    assert code == 128 + signal.SIGINT
    assert "stopping pserver.0, pserver.1, trainer.0, trainer.1" in submitted.said
    assert jobs() == []


def test_a_job_that_slurm_refuses_is_reported_in_its_words(cluster: None, job: Job) -> None:
    with pytest.raises(JobError, match=r"Slurm refuses the job: .*partition"):
        job.launch(on="slurm", slurm="--partition=nowhere")


def jobs() -> list[str]:
    """The first components of all jobs that have not ended."""
    rows = command("squeue", "--noheader", "--format=%A %i").splitlines()
    numbers = [row.split()[1].partition("+")[0] for row in rows]
    return list(dict.fromkeys(numbers))


def command(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=60.0, check=True)
    return done.stdout
