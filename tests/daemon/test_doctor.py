"""`psrt doctor` of real processes."""

from __future__ import annotations

import json
import signal
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.support.carriers import eventually
from tests.support.certificates import Authority, flags_of
from tests.support.processes import DEADLINE_S, psrt
from tests.support.pserver import daemon, joined, onlooker, status
from tests.support.small_job import lines, write_files


def findings(folder: Path, *arguments: str) -> tuple[int, set[tuple[str, str]]]:
    """Exit code, and name and place of the findings about a job."""
    with psrt(folder / "doctor.log", "doctor", *arguments, "--json") as running:
        code = running.exit_code()
        found = json.loads(running.output)
    return code, {(each["name"], each["where"]) for each in found if each["where"] != "this host"}


def test_a_job_in_order_has_no_findings(tmp_path: Path) -> None:
    with daemon(tmp_path) as pserver:
        client = joined(pserver.endpoint)
        _, found = findings(tmp_path, pserver.endpoint)
        client.close()

    assert found == set()


def test_a_missing_trainer_and_a_missing_pserver_are_named(tmp_path: Path) -> None:
    with daemon(tmp_path) as pserver:
        client = joined(pserver.endpoint, trainers=2)
        code, found = findings(tmp_path, pserver.endpoint, "127.0.0.1:1")
        client.close()

    assert code == 1
    assert found == {("missing-trainer", pserver.endpoint), ("port-closed", "127.0.0.1:1")}


def test_a_pserver_that_encrypts_is_named(tmp_path: Path) -> None:
    settings = Authority(tmp_path / "certificates").issue("pserver")
    with daemon(tmp_path, *flags_of(settings)) as pserver:
        _, found = findings(tmp_path, pserver.endpoint)

    assert found == {("encryption", pserver.endpoint)}


def test_sigquit_writes_the_stacks_and_the_pserver_goes_on(tmp_path: Path) -> None:
    with daemon(tmp_path) as pserver:
        pserver.process.send_signal(signal.SIGQUIT)
        eventually(lambda: "psrt/pserver/process" in pserver.log.read_text(), "the stacks")
        client = onlooker(pserver.endpoint)
        assert status(client)["pid"] == pserver.facts["pid"]
        client.close()


def dumped(folder: Path, *arguments: str) -> str:
    with psrt(folder / "dump.log", "doctor", *arguments, "--dump") as running:
        assert running.exit_code() == 1, running.output
        return running.output


def test_a_hang_ends_in_one_report(tmp_path: Path) -> None:
    job = write_files(tmp_path, [lines(320, seed=1)])
    with daemon(tmp_path) as pserver:
        given = "--endpoints", pserver.endpoint, "--trainers", "2", "--trainer-id", "0"
        with psrt(tmp_path / "trainer.log", "trainer", str(job), *given) as trainer:
            with closing(onlooker(pserver.endpoint)) as client:
                eventually(lambda: has_met(status(client)), "the first trainer", DEADLINE_S)
            report = dumped(tmp_path, pserver.endpoint)
        pserver_pid, trainer_pid = pserver.facts["pid"], trainer.process.pid

    waits, stacks = report.split("## The job")
    assert f"{pserver.endpoint}: the job waits for trainer 1 to start" in waits
    assert "[missing-trainer]" in waits
    processes = {int(text.split()[0].strip(",:")): text for text in stacks.split("\nprocess ")[1:]}
    assert f", the pserver {pserver.endpoint}:" in processes[pserver_pid]
    assert "psrt/pserver/process" in processes[pserver_pid]
    assert "psrt/communicator" in processes[trainer_pid]


def test_a_stopped_pserver_is_in_the_report(tmp_path: Path) -> None:
    with daemon(tmp_path) as pserver:
        pserver.process.send_signal(signal.SIGSTOP)
        report = dumped(tmp_path, pserver.endpoint)
        pid = pserver.facts["pid"]

    assert "[hung]" in report
    text = report.partition(f"\nprocess {pid}:")[2].partition("\nprocess ")[0]
    assert "state T" in text
    assert "the process is stopped, so its stacks are unknown" in text


def has_met(facts: dict[str, Any]) -> bool:
    return any(trainer["state"] == "running" for trainer in facts["trainers"])
