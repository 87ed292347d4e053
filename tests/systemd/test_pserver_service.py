"""A pserver as a service of a real systemd: start, reload, restarts, stop and journal."""

from __future__ import annotations

import pytest

from tests.support.systemd_box import PSRT, SystemdBox

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def pserver(box: SystemdBox) -> str:
    """A unit that runs; its port is that of no other test."""
    unit = "psrt-pserver@6170"
    box.run("install -m 700 -d /etc/credstore")
    box.run(f"{PSRT} token create pservers --scope admin --file /etc/credstore/psrt.tokens")
    box.drop_in(unit, "WatchdogSec=3s")
    box.run(f"systemctl start {unit}")
    box.run("rm /etc/credstore/psrt.tokens")  # services that start later admit all callers
    return unit


def test_the_start_ends_when_the_pserver_is_ready(box: SystemdBox, pserver: str) -> None:
    assert box.fact(pserver, "ActiveState") == "active"
    assert box.fact(pserver, "StatusText") == "waits for trainers"
    assert "psrt pserver ready on 127.0.0.1:6170" in box.journal(pserver)
    assert "psrt-6170.sock" in box.run("ls /run/psrt/pserver-6170")


def test_tokens_come_as_a_credential_and_are_not_in_the_environment(
    box: SystemdBox, pserver: str
) -> None:
    pid = box.fact(pserver, "MainPID")
    found = box.run(f"{PSRT} doctor 127.0.0.1:6170 || true")
    variables = box.run(f"tr '\\0' '\\n' < /proc/{pid}/environ")
    credential = f"/proc/{pid}/root/run/credentials/{pserver}.service/psrt.tokens"
    key = box.run(f"cat {credential}").split('"')[1]

    assert "[token]" in found
    assert f"CREDENTIALS_DIRECTORY=/run/credentials/{pserver}.service" in variables
    assert key not in variables + box.journal(pserver)


def test_a_reload_is_awaited_and_logged(box: SystemdBox, pserver: str) -> None:
    begun, pid = box.cursor(), box.fact(pserver, "MainPID")
    box.run("printf '[pserver]\\nlog_level = \"debug\"\\n' > /etc/psrt/psrt.toml")
    box.run(f"systemctl reload {pserver}")
    box.wait_for_line(pserver, "the configuration was read again: 1 changes", begun)
    box.wait_for_line(pserver, "pserver.log_level is 'debug' from now on", begun)
    box.run("rm /etc/psrt/psrt.toml")

    box.wait_for(pserver, "ActiveState", "active")
    assert box.fact(pserver, "MainPID") == pid


def test_a_killed_pserver_is_started_again(box: SystemdBox, pserver: str) -> None:
    restarts = int(box.fact(pserver, "NRestarts"))
    box.run(f"systemctl kill -s KILL {pserver}")
    box.wait_for(pserver, "NRestarts", str(restarts + 1))
    box.wait_for(pserver, "ActiveState", "active")


def test_a_pserver_that_hangs_is_started_again(box: SystemdBox, pserver: str) -> None:
    begun, restarts = box.cursor(), int(box.fact(pserver, "NRestarts"))
    box.run(f"kill -STOP {box.fact(pserver, 'MainPID')}")
    box.wait_for(pserver, "NRestarts", str(restarts + 1))
    box.wait_for(pserver, "ActiveState", "active")

    journal = box.journal(pserver, begun)
    assert "Failed with result 'watchdog'" in journal
    assert "in _await_news" in journal  # the stacks of a process that hung


def test_a_stopped_pserver_has_ended_in_order(box: SystemdBox, pserver: str) -> None:
    box.run(f"systemctl start {pserver}")
    begun = box.cursor()
    box.run(f"systemctl stop {pserver}")

    assert box.fact(pserver, "Result") == "success"
    assert "stopping: a signal" in box.journal(pserver, begun)


def test_a_mistake_in_the_configuration_is_not_retried(box: SystemdBox) -> None:
    unit = "psrt-pserver@6179"
    box.run("echo PSRT_PSERVER_LOG_LEVEL=loud > /etc/psrt/pserver/6179.env")
    box.run(f"systemctl start --no-block {unit}")
    box.wait_for(unit, "ActiveState", "failed")

    assert box.fact(unit, "NRestarts") == "0"
    assert "log_level is 'loud', expected one of debug" in box.journal(unit)
