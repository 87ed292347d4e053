"""The engines of `psrt launch` that run here, each with the flags that choose it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from psrt.launch.engines import TABLE
from tests.support.fake_cluster import fake_cluster
from tests.support.launched_job import FAKE, Job
from tests.support.mpi_flags import mpi_flags
from tests.support.pipe_engine import PIPES
from tests.support.ray_cluster import Network, ray_cluster
from tests.support.slurm_cluster import allocated, slurm_cluster
from tests.support.ssh_hosts import HOSTS, ssh_hosts

Flags = dict[str, str]


@pytest.fixture(scope="session")
def ssh_flags(tmp_path_factory: pytest.TempPathFactory):
    with ssh_hosts(tmp_path_factory.mktemp("ssh")) as config:
        yield {"on": "ssh", "hosts": ",".join(f"{host}:2" for host in HOSTS), "ssh_config": config}


@pytest.fixture(scope="session")
def slurm_conf(tmp_path_factory: pytest.TempPathFactory):
    with slurm_cluster(tmp_path_factory.mktemp("slurm")) as conf:
        yield conf


@pytest.fixture
def allocation(slurm_conf: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Flags]:
    """Flags of a launch in an allocation of two nodes with two tasks each."""
    monkeypatch.setenv("SLURM_CONF", str(slurm_conf))
    with allocated("--nodes=2", "--ntasks-per-node=2") as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        yield {"on": "slurm"}


@pytest.fixture(scope="session")
def ray_network(tmp_path_factory: pytest.TempPathFactory):
    with ray_cluster(tmp_path_factory.mktemp("ray")) as network:
        yield network


@pytest.fixture
def ray_flags(ray_network: Network):
    with ray_network.entered():
        yield {"on": "ray", "ray_address": ray_network.address}


@pytest.fixture
def kubernetes_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Flags:
    """A `kubectl` on the PATH whose pods are processes of `fake_psrt`."""
    pytest.importorskip("helm_python", reason="needs helm-python-sdk, which renders charts")
    pytest.importorskip("yaml")
    return fake_cluster(tmp_path / "cluster", monkeypatch, [sys.executable, str(FAKE)])


@pytest.fixture(params=["pipe", "ssh", "mpi", "slurm", "ray", "kubernetes"])
def on(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Flags:
    """Flags of `psrt launch` for one engine; the test is skipped where it is not installed."""
    if request.param == "pipe":
        monkeypatch.setitem(TABLE, "ssh", PIPES)
        return {"on": "ssh"}
    if request.param == "mpi":
        return mpi_flags()
    if request.param == "slurm":
        return request.getfixturevalue("allocation")
    if request.param in ("ray", "kubernetes"):
        return dict(request.getfixturevalue(f"{request.param}_flags"))
    return {name: str(value) for name, value in request.getfixturevalue("ssh_flags").items()}


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)
