"""The plan as text: one for all engines, compared with the text that a reader sees."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from psrt.config.load import load
from psrt.config.sections import ENGINES, LaunchConfig
from psrt.core.errors import ConfigError
from psrt.launch import launching
from psrt.launch.engines import TABLE
from psrt.launch.plan import Plan

LOCAL = """\
# environment of every process
OMP_NUM_THREADS=3
OPENBLAS_NUM_THREADS=1
PSRT_DATA_EPOCHS=2
PYTHONUNBUFFERED=1

# pserver.0 on 127.0.0.1, log logs/pserver.0.log
psrt pserver \\
  --config JOB \\
  --host 127.0.0.1 \\
  --port 0 \\
  --num-gradient-servers 1 \\
  --unix-dir 'a b' \\
  --ready-file logs/pserver.0.ready.json

# trainer.0 on 127.0.0.1, log logs/trainer.0.log
psrt trainer \\
  --endpoints 127.0.0.1:PORT_OF_PSERVER_0 \\
  --trainers 1 \\
  --trainer-id 0 \\
  --carrier stream \\
  --cpu-threads 1 \\
  --cpu-num 1 \\
  --report logs/trainer.0.report.json \\
  --curves logs/trainer.0.curves.jsonl JOB"""

SSH = """\
# on each host: python3 -m psrt.launch.runners
#   ssh a
#   ssh user@b
# sent to each host: job.toml, train.py
# environment of every process
FLAGS_x=1
OMP_NUM_THREADS=3
OPENBLAS_NUM_THREADS=1
PYTHONUNBUFFERED=1

# pserver.0 on a, log logs/pserver.0.log
psrt pserver \\
  --config job.toml \\
  --host a \\
  --port 0 \\
  --num-gradient-servers 1 \\
  --ready-file logs/pserver.0.ready.json

# trainer.0 on user@b, log logs/trainer.0.log
psrt trainer \\
  --endpoints a:PORT_OF_PSERVER_0 \\
  --trainers 1 \\
  --trainer-id 0 \\
  --carrier stream \\
  --cpu-threads 1 \\
  --cpu-num 1 \\
  --report logs/trainer.0.report.json \\
  --save s3://models/m job.toml"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "job.toml").write_text('[job]\nprogram = "train.py"\n')
    return tmp_path / "job.toml"


def plan_of(job: Path, **flags: object) -> Plan:
    flags = {"job": str(job), "pservers": 1, "trainers": 1, "log_dir": "logs", **flags}
    loaded = load(LaunchConfig, flags=flags, file=str(job), environ={})
    return Plan(loaded, {"OMP_NUM_THREADS": "3", "HOME": "/root", "FLAGS_x": "1"}, ["psrt"])


def test_every_engine_that_the_setting_names_has_a_row_in_the_table() -> None:
    assert list(TABLE) == list(ENGINES)


def test_the_local_plan_shows_environment_and_commands_as_a_shell_takes_them(job: Path) -> None:
    plan = plan_of(job, epochs=2, pserver_args="--unix-dir 'a b'")

    assert TABLE["local"].describe(plan) == LOCAL.replace("JOB", str(job))


def test_the_plan_over_ssh_shows_hosts_files_and_what_each_host_runs(job: Path) -> None:
    flags = {"on": "ssh", "hosts": "a,user@b", "bring": "*.py", "python": "python3"}
    plan = plan_of(job, save="s3://models/m", **flags)

    assert TABLE["ssh"].describe(plan) == SSH


def test_ssh_without_hosts_is_an_error_before_anything_starts(job: Path) -> None:
    with pytest.raises(ConfigError, match="--on ssh needs --hosts; nothing was started"):
        TABLE["ssh"].describe(plan_of(job, on="ssh"))


def test_a_dry_run_prints_the_plan_and_makes_nothing(
    job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(job.parent)
    said: list[str] = []
    loaded = load(LaunchConfig, flags={"job": str(job)}, file=str(job))

    code = launching.run(loaded, say=said.append, program=["psrt"], dry_run=True)

    assert code == 0
    assert said[0].count("psrt trainer") == 2
    assert re.search(r"log runs/job-\d{8}-\d{6}/trainer\.1\.log", said[0])
    assert sorted(path.name for path in job.parent.iterdir()) == ["job.toml", "train.py"]
