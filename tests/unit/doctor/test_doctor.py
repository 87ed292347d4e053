"""Planted faults of hosts and jobs: each is found by its name, with its place and a remedy."""

from __future__ import annotations

import dataclasses
import socket
from pathlib import Path
from typing import Any

import pytest

from psrt.doctor import HostFacts, check_cluster, check_host, check_reachability, host_facts
from psrt.doctor.host_facts import _chosen
from psrt.doctor.processes import pservers_here, without_passwords
from psrt.status import ClusterFacts, PserverFacts, Unreachable

GOOD = HostFacts(
    cores=8,
    cpu_quota=None,
    open_files_limit=65_536,
    available_bytes=64 << 30,
    limit_bytes=None,
    huge_pages="madvise",
    blas_threads=None,
    cache_problem="",
    shm_bytes=8 << 30,
    directory="/srv/cuts",
    free_bytes=1 << 40,
    sync_s=0.002,
)
HOST_FAULTS: dict[str, dict[str, Any]] = {
    "open-files": {"open_files_limit": 1024},
    "memory": {"available_bytes": 500 << 20},
    "memory-limit": {"limit_bytes": 512 << 20},
    "dev-shm": {"shm_bytes": 64 << 20},
    "huge-pages": {"huge_pages": "never"},
    "cpu-quota": {"cpu_quota": 2.0},
    "blas-threads": {"blas_threads": 64},
    "kernel-cache": {"cache_problem": "other users may write to /tmp/kernels"},
    "directory": {"directory_problem": "Read-only file system"},
    "disk-space": {"free_bytes": 10 << 20},
    "slow-disk": {"sync_s": 0.4},
}


def trainer(number: int, state: str = "running", silent_s: float | None = 0.5) -> dict[str, Any]:
    return {"trainer": number, "state": state, "silent_s": silent_s, "presence": "present"}


def facts(endpoint: str = "a:6170", **status: Any) -> PserverFacts:
    usual = {"pid": 7, "job_id": "ctr", "plan_hash": "p", "mode": "Sync", "version": "1"}
    members = [trainer(0), trainer(1)]
    return PserverFacts.of(endpoint, 0.0, usual | {"trainers": members} | status, 1000.0)


def found(*pservers: PserverFacts) -> list[tuple[str, str]]:
    return [(each.name, each.where) for each in check_cluster(ClusterFacts(pservers), "1")]


def test_a_good_host_has_no_findings() -> None:
    assert check_host(GOOD) == []


@pytest.mark.parametrize("name", HOST_FAULTS)
def test_a_fault_of_a_host_is_named(name: str) -> None:
    (finding,) = check_host(dataclasses.replace(GOOD, **HOST_FAULTS[name]))

    assert finding.name == name
    assert finding.what
    assert finding.remedy


def test_a_good_job_has_no_findings() -> None:
    both = facts("a:6170"), facts("b:6170")

    assert found(*both) == []


CLUSTER_FAULTS: dict[str, dict[str, Any]] = {
    "different-jobs": {"job_id": "another"},
    "versions": {"version": "2"},
    "clock": {"now_s": 1060.0},
    "pserver-memory": {"memory_bytes": 95, "memory_limit_bytes": 100},
    "job-error": {"error": "trainer 3 is lost"},
    "recovering": {"recovers_from": [1]},
    "slow-pserver": {"counters": {"pserver_apply_s": 90.0}},
    "silent-trainer": {"waiting": [0], "trainers": [trainer(0), trainer(1, silent_s=45.0)]},
    "missing-trainer": {"trainers": [trainer(0), trainer(1, "unseen", None)]},
}


@pytest.mark.parametrize("name", CLUSTER_FAULTS)
def test_a_fault_of_a_job_is_named_with_the_pserver(name: str) -> None:
    others = [facts(endpoint, counters={"pserver_apply_s": 10.0}) for endpoint in ("a", "b")]

    (finding,) = found(*others, facts("c:6170", **CLUSTER_FAULTS[name]))

    assert finding == (name, "the pservers" if name == "different-jobs" else "c:6170")


def test_a_clock_that_is_a_little_off_is_no_finding() -> None:
    assert found(facts(now_s=1001.5)) == []


def test_a_trainer_that_computes_for_a_while_is_no_finding() -> None:
    assert found(facts(waiting=[0], trainers=[trainer(0), trainer(1, silent_s=5.0)])) == []


# --- pservers that do not answer -----------------------------------------------------------------


def reason(endpoint: str) -> str:
    return check_reachability(Unreachable(endpoint, "no reply")).name


def test_a_name_without_an_address_is_named() -> None:
    assert reason("no-such-host.invalid:6170") == "dns"


def test_a_port_where_nothing_listens_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

    assert reason(f"127.0.0.1:{port}") == "port-closed"


def test_a_server_that_says_nothing_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.0)

        assert reason(f"127.0.0.1:{listener.getsockname()[1]}") == "hung"


# --- facts ----------------------------------------------------------------------------------------


def test_facts_of_this_host_are_read(tmp_path: Path) -> None:
    read = host_facts(str(tmp_path / "kernels"), str(tmp_path))

    assert read.cores >= 1
    assert read.available_bytes
    assert read.free_bytes
    assert read.sync_s is not None
    assert read.cache_problem == read.directory_problem == ""
    assert [each.name for each in tmp_path.iterdir()] == ["kernels"]


def test_a_directory_that_does_not_exist_is_a_problem(tmp_path: Path) -> None:
    assert host_facts(str(tmp_path), str(tmp_path / "none")).directory_problem


def test_a_cache_that_others_may_write_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels").chmod(0o777)

    assert "other users may write" in host_facts(str(tmp_path / "kernels")).cache_problem


def test_the_chosen_word_is_that_in_brackets(tmp_path: Path) -> None:
    (tmp_path / "enabled").write_text("always [madvise] never\n")

    assert _chosen(tmp_path / "enabled") == "madvise"
    assert _chosen(tmp_path / "none") == ""


def test_users_and_passwords_of_urls_are_in_no_report() -> None:
    command = "psrt trainer --resume s3://key:secret@host/cuts job.toml"

    assert without_passwords(command) == "psrt trainer --resume s3://host/cuts job.toml"


def test_only_pservers_of_this_host_have_processes_here() -> None:
    others = facts("192.0.2.250:6170", pid=8), facts("no-such-host.invalid:6170", pid=9)

    assert pservers_here([facts("127.0.0.1:6170"), *others]) == {7: "127.0.0.1:6170"}
