"""A launch on Kubernetes as data: values of the chart, facts of pods, the end of a process."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from psrt.config.load import load, load_job
from psrt.config.sections import LaunchConfig
from psrt.launch.kubernetes import (
    Followed,
    PodChild,
    first_failures,
    read_facts,
    release_name,
    rendered,
    values_of,
)
from psrt.launch.kubernetes.chart import CHART
from psrt.launch.kubernetes.pod_child import report_in
from psrt.launch.plan import ChildId, Command, Plan


@pytest.fixture
def job(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("x = 1")
    (tmp_path / "job.toml").write_text('[job]\nprogram = "train.py"\n')
    return tmp_path / "job.toml"


def values(job: Path, environ: dict[str, str] | None = None, **flags: object) -> dict[str, Any]:
    flags = {"job": str(job), "on": "kubernetes", **flags}
    loaded = load(LaunchConfig, flags=flags, file=str(job), environ={})
    plan = Plan(loaded, environ or {}, ["psrt"])
    return values_of(plan, load_job(str(job), environ={}).config)


def test_values_have_the_flags_of_the_plan_without_those_that_the_chart_gives(job: Path) -> None:
    found = values(job, pservers=3, save="/out", pserver_args="--stripes 4 --insecure")

    assert found["pservers"] == {"count": 3, "restarts": 0, "arguments": ["--stripes", "4"]}
    assert found["insecure"] is True
    words = found["trainers"]["arguments"]
    assert words[:2] == ["--report", "/dev/stdout"]
    assert words[words.index("--save") + 1] == "/out"
    assert not {"--endpoints", "--trainers", "--trainer-id", str(job)} & set(words)
    assert found["job"]["files"]["train.py"] == "x = 1"


def test_variables_of_psrt_become_settings_and_cuts_a_url(job: Path) -> None:
    environ = {"PSRT_TRAINER_LOG_EVERY_S": "5", "PSRT_LAUNCH_ON": "kubernetes", "HOME": "/root"}
    found = values(job, environ, epochs=2, checkpoint_dir="s3://bucket/cuts")

    assert found["settings"] == {"data": {"epochs": "2"}, "trainer": {"log_every_s": "5"}}
    assert found["variables"]["OMP_NUM_THREADS"] == "1"
    assert "HOME" not in found["variables"]
    assert found["checkpoints"] == {"enabled": True, "url": "s3://bucket/cuts", "recover": True}
    assert "--checkpoint-dir" not in found["pservers"]["arguments"]


@pytest.mark.parametrize(
    ("job_name", "name"),
    [("ctr_dnn", "ctr-dnn"), ("A.B", "a-b"), ("7 days", "job-7-days"), ("x" * 60, "x" * 40)],
)
def test_a_release_has_the_name_of_the_job_as_kubernetes_takes_it(job_name: str, name: str) -> None:
    assert release_name(job_name) == name


def test_the_chart_is_that_of_the_deploy_folder() -> None:
    assert (CHART / "Chart.yaml").is_file()


def test_the_command_helm_renders_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = tmp_path / "helm"
    claim = "kind: PersistentVolumeClaim\nmetadata: {annotations: {helm.sh/resource-policy: keep}}"
    (tmp_path / "manifests").write_text(f"---\nkind: Job\n---\n\n{claim}\n")
    lines = ["#!/bin/sh", f'echo "$@" > {tmp_path}/words', f"cat > {tmp_path}/given"]
    command.write_text("\n".join([*lines, f"cat {tmp_path}/manifests"]) + "\n")
    command.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda name: str(command))

    found = rendered("clicks", "ads", "mine.yaml", {"insecure": True})

    words = (tmp_path / "words").read_text()
    assert words == f"template clicks {CHART} --namespace ads --values mine.yaml --values -\n"
    assert json.loads((tmp_path / "given").read_text()) == {"insecure": True}
    assert "Job" in found.objects
    assert "PersistentVolumeClaim" not in found.objects
    assert "PersistentVolumeClaim" in found.kept


def pod(index: int, code: int | None = None, finished: str = "", **status: Any) -> dict[str, Any]:
    ended = {"terminated": {"exitCode": code, "finishedAt": finished}}
    state = {"running": {}} if code is None else ended
    return {
        "kind": "Pod",
        "metadata": {
            "name": f"clicks-trainer-{index}-abc",
            "labels": {"app.kubernetes.io/component": "trainer"},
            "annotations": {"batch.kubernetes.io/job-completion-index": str(index)},
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "status": {"containerStatuses": [{"state": state}], **status},
    }


def job_item(*conditions: dict[str, str]) -> dict[str, Any]:
    labels = {"app.kubernetes.io/component": "trainer"}
    return {"kind": "Job", "metadata": {"labels": labels}, "status": {"conditions": conditions}}


FAILED = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}
TRAINER = ChildId("trainer", 1)


def test_pods_of_a_failed_job_that_end_later_are_not_the_reason() -> None:
    items = [pod(0, 143, "10:00:02"), pod(1, 60, "10:00:01"), pod(2), job_item(FAILED)]

    pods, jobs = read_facts(json.dumps({"items": items}))

    assert jobs["trainer"].failure.startswith("BackoffLimitExceeded")
    assert first_failures(pods, jobs) == {"trainer": TRAINER}
    assert pods[TRAINER][-1].code == 60


def test_an_evicted_pod_without_a_container_has_failed() -> None:
    item = pod(0) | {"status": {"phase": "Failed", "reason": "Evicted"}}

    pods, _ = read_facts(json.dumps({"items": [item]}))

    assert pods[ChildId("trainer", 0)][-1].code == 255


class Process:
    """A process of a launch, updated by items of the API."""

    def __init__(self, directory: Path) -> None:
        self.said: list[str] = []
        result = directory / "trainer.1.json"
        command = Command(TRAINER, ("psrt", "trainer"), {}, directory / "trainer.1.log", result)
        self.child = PodChild(command, "", 0.0, self.said.append, lambda child, number: None)

    def update(self, *items: dict[str, Any], is_logged: bool = True) -> int | None:
        pods, jobs = read_facts(json.dumps({"items": items}))
        self.child.update(pods.get(TRAINER, []), jobs.get("trainer"), is_logged=is_logged)
        self.child.has_just_ended(5.0)
        return self.child.code


def test_a_process_ends_once_its_log_has_arrived_and_its_report_is_read(tmp_path: Path) -> None:
    process = Process(tmp_path)
    process.child.append(b'trains\n{\n  "steps": 3\n}\n')

    assert process.update(pod(1, 0), is_logged=False) is None
    assert process.update(pod(1, 0)) == 0

    assert json.loads((tmp_path / "trainer.1.json").read_text()) == {"steps": 3}


def test_a_failed_pod_is_no_end_while_its_job_tries_again(tmp_path: Path) -> None:
    process = Process(tmp_path)

    assert process.update(pod(1, 137), job_item()) is None
    assert process.update(job_item()) is None
    assert process.update(pod(1, 137), job_item(FAILED)) == -9

    assert process.said == ["trainer.1 ended with exit code 137, in pod clicks-trainer-1-abc"]


def test_what_a_pod_waits_for_is_said_once(tmp_path: Path) -> None:
    process = Process(tmp_path)
    waiting = {"state": {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}}
    item = pod(1) | {"status": {"containerStatuses": [waiting]}}

    process.update(item)
    process.update(item)

    assert process.said == ["trainer.1 waits: ErrImagePull: no such image"]


def test_output_without_a_report_gives_an_empty_one() -> None:
    assert report_in("{\nnot json") == "{}\n"


def test_a_followed_command_is_read_to_its_end() -> None:
    command = Followed(["echo", "a"])
    found = b""
    while (chunk := command.read()) is not None:
        found += chunk
    command.close()

    assert found == b"a\n"
