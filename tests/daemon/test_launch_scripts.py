"""A script under the launcher: its ranks as under Python and torchrun, with and without pservers.

Pservers are fakes, ranks real processes of a script that needs neither psrt nor torch.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from psrt.config.load import load
from psrt.config.sections import LaunchConfig
from psrt.core.errors import ConfigError, JobError
from psrt.launch import launching
from psrt.launch.engines import TABLE
from psrt.launch.engines.slurm_job import batch_script
from psrt.launch.scripts import ScriptPlan, script_job
from tests.support.launched_job import PROGRAM
from tests.support.pipe_engine import PIPES

SCRIPT = """\
import json, os, pathlib, signal, socket, sys
found = pathlib.Path(sys.argv[1], f"rank-{os.environ['RANK']}.json")
is_again = found.exists()
found.write_text(json.dumps({"arguments": sys.argv[1:], **os.environ}))
for endpoint in filter(None, os.environ["PADDLE_PSERVERS_IP_PORT_LIST"].split(",")):
    host, _, port = endpoint.rpartition(":")
    socket.create_connection((host, int(port)))
is_killed = os.environ["RANK"] in sys.argv[2:3]
if is_killed and not (is_again and "once" in sys.argv):
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[2:] and "once" not in sys.argv:
    signal.pause()
print("rank", os.environ["RANK"], "trained")
"""


class Script:
    """A script in a directory of its own, and its launches."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.logs = directory, directory / "logs"
        self.said: list[str] = []
        self.path = directory / "train.py"
        self.path.write_text(SCRIPT)
        self.logs.mkdir()
        self.expect_callers(2)

    def expect_callers(self, number: int) -> None:
        """Let pservers serve so many processes of ranks."""
        behaviour = {"trainers": number, "launcher": os.getpid()}
        for directory in (self.logs, self.directory):
            (directory / "behaviour.json").write_text(json.dumps(behaviour))

    def launch(self, *arguments: str, dry_run: bool = False, **flags: Any) -> int:
        given = {"job": str(self.path), "log_dir": str(self.logs), "grace_s": 30.0, **flags}
        loaded = load(LaunchConfig, flags=given)
        own = str(self.directory), *arguments
        say = self.said.append
        return launching.run(loaded, say=say, program=PROGRAM, dry_run=dry_run, arguments=own)

    def rank(self, number: int) -> dict[str, Any]:
        """The arguments and the environment that a rank has found."""
        return json.loads((self.directory / f"rank-{number}.json").read_text())


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script(tmp_path)


def test_ranks_find_each_other_and_the_pservers(script: Script) -> None:
    assert script.launch() == 0

    ranks = [script.rank(0), script.rank(1)]
    served = [json.loads((script.logs / f"pserver.{n}.ready.json").read_text()) for n in (0, 1)]
    endpoints = ",".join(each["endpoint"] for each in served)
    for name in ("RANK", "LOCAL_RANK", "PADDLE_TRAINER_ID", "PSRT_TRAINER_TRAINER_ID"):
        assert [each[name] for each in ranks] == ["0", "1"], name
    for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE", "PADDLE_TRAINERS_NUM", "PSRT_TRAINER_TRAINERS"):
        assert [each[name] for each in ranks] == ["2", "2"], name
    for name in ("PADDLE_PSERVERS_IP_PORT_LIST", "PSRT_TRAINER_ENDPOINTS"):
        assert [each[name] for each in ranks] == [endpoints] * 2, name
    assert {each["MASTER_ADDR"] for each in ranks} == {"127.0.0.1"}
    assert len({each["MASTER_PORT"] for each in ranks}) == 1
    assert ranks[0]["TRAINING_ROLE"] == "TRAINER"
    assert ranks[0]["OMP_NUM_THREADS"] == "1"
    assert ranks[0]["arguments"] == [str(script.directory)]
    assert "rank 0 trained" in script.said
    assert "rank 1 trained" in (script.logs / "trainer.1.log").read_text()


def test_a_rank_that_dies_ends_the_launch_by_its_name(script: Script) -> None:
    with pytest.raises(JobError, match=r"trainer\.1 \(pid \d+\) was killed by SIGKILL"):
        script.launch("1")

    assert any("stopping" in line and "trainer.0" in line for line in script.said)


def test_a_killed_rank_begins_its_script_again_in_its_place(script: Script) -> None:
    script.expect_callers(3)

    assert script.launch("1", "once", restarts=1) == 0

    assert any("trainer.1 was killed and is started again" in line for line in script.said)
    assert (script.logs / "trainer.1.log").read_text().count("rank 1 trained") == 1
    assert script.rank(1)["MASTER_PORT"] == script.rank(0)["MASTER_PORT"]


def test_ranks_on_other_hosts_get_their_own_variables(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TABLE, "ssh", PIPES)
    monkeypatch.setenv("MASTER_PORT", "20777")

    assert script.launch(on="ssh", bring=("*.json",)) == 0

    ranks = [script.rank(0), script.rank(1)]
    assert [each["RANK"] for each in ranks] == ["0", "1"]
    assert {each["MASTER_PORT"] for each in ranks} == {"20777"}
    assert ranks[1]["PSRT_TRAINER_ENDPOINTS"].count(":") == 2
    assert "rank 0 trained" in script.said


def test_ranks_of_a_host_are_counted_there_and_all_meet_at_that_of_rank_0(script: Script) -> None:
    given = {"job": str(script.path), "log_dir": str(script.logs), "on": "ssh", "trainers": 3}
    plan = ScriptPlan(load(LaunchConfig, flags={**given, "python": "python3"}), {"HOME": "/root"})

    commands = plan.trainers(["a:1", "b:2"], host_of=lambda child: "ba"[child.index % 2])

    own = [command.own for command in commands]
    assert [each["LOCAL_RANK"] for each in own] == ["0", "0", "1"]
    assert [each["LOCAL_WORLD_SIZE"] for each in own] == ["2", "1", "2"]
    assert [each["WORLD_SIZE"] for each in own] == ["3"] * 3
    assert {each["MASTER_ADDR"] for each in own} == {"b"}
    assert {int(each["MASTER_PORT"]) // 10_000 for each in own} == {2}
    assert commands[0].arguments == ("python3", str(script.path))


def test_a_job_of_slurm_launches_the_script_with_its_arguments(script: Script) -> None:
    given = {"job": str(script.path), "log_dir": str(script.logs), "on": "slurm", "trainers": 3}
    plan = ScriptPlan(load(LaunchConfig, flags=given), {}, ["--epochs", "a b"])

    last = batch_script(plan).splitlines()[-1]

    assert "--on=slurm --trainers=3" in last
    assert last.endswith(f"$resume {script.path} -- --epochs 'a b'")


def test_mode_collective_starts_ranks_without_pservers(script: Script) -> None:
    assert script.launch(mode="collective", trainers=3) == 0

    ranks = [script.rank(number) for number in range(3)]
    endpoints = ranks[0]["PADDLE_TRAINER_ENDPOINTS"].split(",")
    assert [each["PADDLE_CURRENT_ENDPOINT"] for each in ranks] == endpoints
    assert ranks[2]["WORLD_SIZE"] == "3"
    assert ranks[0]["PADDLE_PSERVERS_IP_PORT_LIST"] == ""
    assert not list(script.logs.glob("pserver*"))
    ports = {endpoint.rpartition(":")[2] for endpoint in endpoints}
    assert ranks[0]["MASTER_PORT"] not in ports


def test_each_selected_device_has_a_rank(script: Script) -> None:
    assert script.launch(mode="collective", selected_devices=("3", "5")) == 0

    assert [script.rank(number)["FLAGS_selected_gpus"] for number in (0, 1)] == ["3", "5"]


def test_a_dry_run_prints_pservers_without_a_job_and_the_command_of_each_rank(
    script: Script,
) -> None:
    assert script.launch("7", dry_run=True) == 0

    (text,) = script.said
    assert "--config" not in text
    assert "--num-gradient-servers 2" in text
    assert text.count(f"{script.path} {script.directory} 7") == 2


def test_pservers_of_a_script_are_started_again_if_its_environment_asks_for_durability(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = load(LaunchConfig, flags={"job": str(script.path)}).config
    assert script_job(config).retained_bytes == 0

    monkeypatch.setenv("PSRT_JOB_DURABILITY", "delta")
    monkeypatch.setenv("PSRT_JOB_RETAINED_MIB", "7")
    job = script_job(config)

    assert (job.durability, job.retained_bytes) == ("delta", 7 << 20)


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ({"save": "model"}, "--save has no effect"),
        ({"epochs": 3}, "--epochs has no effect"),
        ({"warm_start_strict": True}, "--warm-start-strict has no effect"),
        ({"mode": "async"}, "--mode has no effect"),
        ({"on": "ray"}, "cannot be launched --on ray"),
        ({"job": "missing.py"}, r"missing\.py is not a file"),
        ({"selected_devices": ("0",)}, "--selected-devices"),
    ],
)
def test_settings_of_jobs_are_refused_before_anything_starts(
    script: Script, flags: dict[str, Any], named: str
) -> None:
    with pytest.raises(ConfigError, match=named):
        script.launch(**flags)

    assert script.said == []
