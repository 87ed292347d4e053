"""The engine `kubernetes` with a stand-in for kubectl: what is created, replaced and deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from psrt.core.errors import ConfigError
from psrt.launch import launching
from tests.support.launched_job import PROGRAM, Job

WAITING = '[job]\nprogram = "train.py"\n[communication]\non_trainer_loss = "wait"\n'


@pytest.fixture
def objects(tmp_path: Path) -> Path:
    return tmp_path / "cluster"


def names(objects: Path) -> list[str]:
    return sorted(path.stem for path in objects.glob("*.json"))


def test_nothing_that_was_created_stays_after_an_interrupt(
    kubernetes_flags: dict[str, str], job: Job, objects: Path
) -> None:
    job.behave(trainer_0="wait", trainer_1="interrupt")

    assert job.launch(**kubernetes_flags) == 130

    assert "created release job in default" in job.said
    assert names(objects) == []


def test_a_job_of_the_same_name_is_left_alone(
    kubernetes_flags: dict[str, str], job: Job, objects: Path
) -> None:
    job.behave()
    (objects / "Job.job-pserver.json").write_text('{"metadata": {"name": "job-pserver"}}')

    with pytest.raises(
        ConfigError, match=r"has job\.batch/job-pserver already; nothing was started"
    ):
        job.launch(**kubernetes_flags)

    assert names(objects) == ["Job.job-pserver"]


def test_a_failed_trainer_is_replaced_by_its_job(
    kubernetes_flags: dict[str, str], job: Job
) -> None:
    job.write(WAITING)
    job.behave(trainer_1="fail_once", trainers=3)  # connections, to a pserver of this test

    code = job.launch(restarts="1", **kubernetes_flags)

    assert code == 0
    assert "trainer.1 ended with exit code 1, in pod job-trainer-1-0" in job.said
    assert "trainer 1 trained" in (job.logs / "trainer.1.log").read_text()


def test_a_dry_run_prints_the_manifests_and_needs_no_cluster(
    job: Job, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("helm_python", reason="needs helm-python-sdk, which renders charts")
    yaml = pytest.importorskip("yaml")
    monkeypatch.setenv("PATH", "/nowhere")
    values = tmp_path / "values.yaml"
    values.write_text("tls: {secret: clicks-tls}\nimage: {repository: registry/psrt}\n")
    loaded = job.loaded(on="kubernetes", trainers="3", namespace="ads", chart_values=str(values))

    assert launching.run(loaded, say=job.said.append, program=PROGRAM, dry_run=True) == 0

    found = {
        (each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(job.output)
    }
    spec = found["Job", "job-trainer"]["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    assert spec["completions"] == 3
    assert container["image"] == "registry/psrt:0.1.0"
    assert "job-pserver-0.job-pserver.ads.svc:6170" in container["args"][2]
    assert container["args"][-1] == "/srv/job/job.toml"


def test_without_kubectl_nothing_is_started(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    with pytest.raises(ConfigError, match="needs kubectl"):
        job.launch(on="kubernetes")


def test_values_that_the_chart_refuses_are_reported(
    kubernetes_flags: dict[str, str], job: Job, objects: Path
) -> None:
    job.behave()

    with pytest.raises(ConfigError, match=r"Set tls\.secret, or insecure=true"):
        job.launch(**{**kubernetes_flags, "pserver_args": ""})

    assert names(objects) == []
