"""Pods of the Helm chart, run by Podman: as a user without rights, on a network of their own.

Their image has no files of psrt; they find those of this checkout on volumes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from psrt.kernels import cache
from tests.support.chart import NAMESPACE, of_kind, rendered, workloads
from tests.support.processes import clean_environment
from tests.support.saved_models import model_of
from tests.support.small_job import lines, write_files

ROOT = Path(__file__).resolve().parents[2]
BOX = Path(__file__).with_name("box.sh")
PODS_S, DEADLINE_S = 300, 390.0
VARIABLES = "PYTHONPATH=/srv/psrt:/srv/site LD_LIBRARY_PATH=/opt/py/lib PYTHONDONTWRITEBYTECODE=1"
ALIASES = [
    {"ip": f"10.81.0.{10 + n}", "hostnames": [f"clicks-pserver-{n}.clicks-pserver.{NAMESPACE}.svc"]}
    for n in range(2)
]
SCRIPT = r"""
set -e
cd "$1"
tar -C image -cf - . | podman import -q --change 'ENTRYPOINT ["/opt/bin/psrt"]' \
  --change 'ENV PATH=/opt/bin:/usr/bin:/bin' \
  --change 'ENV PSRT_PSERVER_CACHE_DIR=/var/cache/psrt' \
  --change 'ENV PSRT_TRAINER_CACHE_DIR=/var/cache/psrt' - localhost/psrt:test > /dev/null
podman network create --internal --subnet 10.81.0.0/24 job > /dev/null
address=10
for file in pods/*pserver*.yaml pods/*trainer*.yaml; do
  podman kube play --network job --ip "10.81.0.$address" "$file" > "$file.log" 2>&1 ||
    cat "$file.log" >&2
  address=$((address + 1))
done
for name in $(cd pods; ls *.yaml | sort -r | sed 's/.yaml$//'); do
  container=$name-$(echo "$name" | cut -d- -f2)
  echo "$name $(timeout 240 podman wait "$container")" >> codes
  podman logs "$container" > "$name.log" 2>&1
  podman inspect "$container" > "$name.json"
done
podman pod rm -af -t 0 > /dev/null
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.getuid() != 0
        or not all(map(shutil.which, ("podman", "runc", "iptables", "unshare")))
        or not Path("/sys/fs/cgroup/systemd").exists(),
        reason="needs root, podman, runc, iptables, unshare and cgroups of version 1",
    ),
]


def values_for(job: Path) -> dict[str, Any]:
    """Values of the chart for a job of 2 pservers and 2 trainers, with files of this host."""
    paths = {
        "usr": (Path("/usr"), "/usr"),
        "py": (Path(sys.base_prefix), "/opt/py"),
        "site": (Path(sysconfig.get_paths()["purelib"]), "/srv/site"),
        "psrt": (ROOT, "/srv/psrt"),
        "data": (job.parent, "/data"),
        "output": (job.parent / "output", "/output"),
    }
    return {
        "insecure": True,
        "image": {"repository": "localhost/psrt", "tag": "test", "pullPolicy": "Never"},
        "job": {
            "file": "job.toml",  # Podman 4 makes no directories for files of a ConfigMap
            "files": {name: (job.parent / name).read_text() for name in ("job.toml", "program.py")},
        },
        "settings": {"data": {"train": ["/data/train-*"], "test": ["/data/test-*"]}},
        "trainers": {"arguments": ["--save", "/output/model"]},
        "volumes": [
            {"name": name, "hostPath": {"path": str(host)}} for name, (host, _) in paths.items()
        ],
        "volumeMounts": [
            {"name": name, "mountPath": inside, "readOnly": name != "output"}
            for name, (_, inside) in paths.items()
        ],
    }


def pods_of(objects: list[dict[str, Any]], directory: Path) -> dict[str, list[dict[str, Any]]]:
    """Name of a pod → its objects: what Jobs make of their templates, and names as addresses."""
    (files,) = of_kind(objects, "ConfigMap")
    found = {}
    for job in workloads(objects).values():
        for number in range(job["spec"]["completions"]):
            name = f"{job['metadata']['name']}-{number}"
            spec = job["spec"]["template"]["spec"] | {"hostname": name, "hostAliases": ALIASES}
            annotations = {"batch.kubernetes.io/job-completion-index": str(number)}
            metadata = {"name": name, "annotations": annotations}
            spec = as_podman_has_it(spec, directory / f"tmp.{name}")
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
            found[name] = [files, pod]
    return found


def as_podman_has_it(spec: dict[str, Any], tmp: Path) -> dict[str, Any]:
    """Work around Podman 4: it publishes all ports, and shares an emptyDir, which is root's."""
    tmp.mkdir()
    tmp.chmod(0o1777)
    volumes = [each for each in spec["volumes"] if each["name"] != "tmp"]
    volumes.append({"name": "tmp", "hostPath": {"path": str(tmp)}})
    text = json.dumps(spec["containers"][0]).replace('"port": "metrics"', '"port": 9170')
    container = json.loads(text)
    container.pop("ports", None)
    return spec | {"volumes": volumes, "containers": [container]}


def make_image(directory: Path) -> None:
    """Directories to mount on, the command psrt, and the kernels of this host."""
    for name in ("usr", "tmp", "proc", "sys", "dev", "etc", "data", "output", "opt/py", "srv/psrt"):
        (directory / name).mkdir(parents=True)
    for name in ("srv/site", "opt/bin", "srv/job", "var/cache/psrt"):
        (directory / name).mkdir(parents=True)
    for name in ("bin", "lib", "lib64"):
        (directory / name).symlink_to(f"usr/{name}")
    (directory / "etc/nsswitch.conf").write_text("hosts: files dns\n")
    command = directory / "opt/bin/psrt"
    command.write_text(f'#!/bin/sh\nexec env {VARIABLES} /opt/py/bin/python3 -m psrt "$@"\n')
    command.chmod(0o755)
    kernels = cache.directory()
    shutil.copytree(kernels, directory / "var/cache/psrt" / kernels.name)


@pytest.fixture
def job(tmp_path: Path) -> Path:
    texts = [lines(160, seed=1), lines(160, seed=2)]
    return write_files(tmp_path / "small", texts)


def trained_here(job: Path) -> dict[str, np.ndarray]:
    words = [sys.executable, "-m", "psrt", "launch", "--ready-timeout-s", "300"]
    words += ["--save", "model", "job.toml"]
    environment = clean_environment() | {"PYTHONPATH": str(ROOT)}
    subprocess.run(words, cwd=job.parent, env=environment, check=True, timeout=DEADLINE_S)
    return model_of(job.parent / "model")


def test_pods_train_to_the_bits_of_a_launch_on_one_host(job: Path, tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    here = trained_here(job)
    objects = rendered(values_for(job))
    make_image(tmp_path / "image")
    (tmp_path / "pods").mkdir()
    (job.parent / "output").mkdir(mode=0o777)
    (job.parent / "output").chmod(0o777)
    for name, each in pods_of(objects, tmp_path).items():
        (tmp_path / "pods" / f"{name}.yaml").write_text(yaml.safe_dump_all(each))

    subprocess.run(
        [BOX, tmp_path, "timeout", str(PODS_S), "bash", "-c", SCRIPT, "script", tmp_path],
        check=True,
        timeout=DEADLINE_S,
        env=clean_environment() | {"STORAGE_DRIVER": "overlay"},
    )

    codes = (tmp_path / "codes").read_text().splitlines()
    logs = "".join(path.read_text() for path in tmp_path.glob("*.log"))
    assert sorted(codes) == [
        f"clicks-{role}-{n} 0" for role in ("pserver", "trainer") for n in (0, 1)
    ], logs
    there = model_of(job.parent / "output" / "model")
    assert here.keys() == there.keys()
    assert all(np.array_equal(here[name], there[name]) for name in here)
