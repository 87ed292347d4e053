"""`psrt doctor` of real processes."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from tests.support.carriers import eventually
from tests.support.certificates import Authority, flags_of
from tests.support.processes import psrt
from tests.support.pserver import daemon, joined, onlooker, status


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
