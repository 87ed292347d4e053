"""`--profile` of trainers and launchers: what is written and said; nothing without it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from psrt.config.load import load, load_job
from psrt.config.sections import LaunchConfig, TrainerConfig
from psrt.core.errors import ConfigError
from psrt.kernels import jit
from psrt.launch.plan import Plan
from psrt.trainer.inputs.job import load_job as build
from psrt.trainer.sessions import command, profiling
from psrt.trainer.sessions.session_parts import run_of
from tests.support.small_job import BATCH, PROGRAM, lines, write_files

STEPS = 12
STOPS = ("step", "python", "data", "communicate")


@pytest.fixture(autouse=True, scope="module")
def kernels_are_compiled() -> None:
    jit.warm_up()


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A job that can be trained without pservers."""
    path = write_files(tmp_path, [lines(STEPS * BATCH, seed=1)])
    whole = PROGRAM.replace("(1000, 4)", "(1000, 4), is_distributed=False")
    (tmp_path / "program.py").write_text(whole)
    return path


def train(job: Path, **settings: Any) -> list[str]:
    said: list[str] = []
    config = load_job(str(job), environ={}).config
    assert command.train(TrainerConfig(local=True, **settings), config, said.append) == 0
    return said


def test_a_profiled_training_writes_a_timeline_and_tells_what_takes_time(job: Path) -> None:
    out = job.parent / "out.json"

    said = "\n".join(train(job, profile=str(out)))

    events = [e for e in json.loads(out.read_text())["traceEvents"] if e["ph"] == "X"]
    stops = Counter(event["name"] for event in events if event["cat"] in STOPS)
    assert stops["step"] == stops["run"] == stops["push-pull"] == STEPS
    assert stops["prefetch"] == STEPS - 1
    assert {"feed", "prepare", "pull"} <= stops.keys()
    ops = Counter(event["name"] for event in events if event["cat"] == "forward")
    assert ops["fc"] == STEPS  # testing, which runs it too, is not in the profile
    threads = {event["tid"]: event["name"] for event in events}
    assert len(threads) == 2
    assert f"\n{STEPS} steps of " in said
    assert "Python between ops" in said
    assert f"open {out} in ui.perfetto.dev" in said


def test_without_the_flag_no_profiler_is_attached(job: Path) -> None:
    settings = TrainerConfig(local=True)
    run = run_of(settings, build(load_job(str(job), environ={}).config))

    with profiling.profiled(settings, run, print):
        assert run.profiler is run.executor.profiler is None

    assert "Python between ops" not in "\n".join(train(job))


def test_a_profile_that_could_not_be_written_is_refused_before_training(job: Path) -> None:
    gone = job.parent / "gone" / "out.json"

    with pytest.raises(ConfigError, match=r"--profile .* needs the directory .*gone"):
        train(job, profile=str(gone))


def test_a_link_stays_a_link(job: Path) -> None:
    link = job.parent / "link"
    link.symlink_to(job.parent / "out.json")

    train(job, profile=str(link))

    assert link.is_symlink()
    assert json.loads((job.parent / "out.json").read_text())["traceEvents"]


@pytest.mark.parametrize("given", ["flag", "toml"])
def test_launch_gives_each_trainer_a_file_of_its_own(job: Path, given: str) -> None:
    if given == "toml":
        job.write_text(job.read_text() + 'profile = "runs/out.json"\n')  # ends in [trainer]
    flags = {"profile": "runs/out.json"} if given == "flag" else {}
    loaded = load(LaunchConfig, flags={"job": str(job), **flags}, file=str(job), environ={})

    commands = Plan(loaded, {}).trainers(["127.0.0.1:1"])

    arguments = [list(command.arguments) for command in commands]
    assert [words[words.index("--profile") + 1] for words in arguments] == [
        "runs/out.trainer-0.json",
        "runs/out.trainer-1.json",
    ]


def test_launch_without_a_profile_asks_for_none(job: Path) -> None:
    loaded = load(LaunchConfig, flags={"job": str(job)}, file=str(job), environ={})

    (first, _) = Plan(loaded, {}).trainers(["127.0.0.1:1"])

    assert "--profile" not in first.arguments
