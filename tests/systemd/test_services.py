"""Services under a real systemd, in a box of namespaces: needs root, systemd and cgroups."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BOX = Path(__file__).with_name("box.sh")
UNIT = "psrt-pserver@6170"
VARIABLES = "PYTHONPATH=/srv/psrt:/srv/site LD_LIBRARY_PATH=/opt/py/lib PYTHONDONTWRITEBYTECODE=1"
PSRT = f"env {VARIABLES} /opt/py/bin/python3 -m psrt"
DEADLINE_S = 60.0

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.getuid() != 0
        or shutil.which("unshare") is None
        or not Path("/lib/systemd/systemd").exists()
        or not Path("/sys/fs/cgroup/systemd").exists(),
        reason="needs root, systemd, unshare and cgroups of version 1",
    ),
]


class SystemdBox:
    """A booted box with the services of psrt installed, whose watchdog waits 3 s."""

    def __init__(self, directory: Path) -> None:
        self._directory = str(directory)

    def up(self) -> None:
        binds = f"{ROOT}:/srv/psrt", f"{sys.base_prefix}:/opt/py"
        site = f"{sysconfig.get_paths()['purelib']}:/srv/site"
        subprocess.run([BOX, "up", self._directory, *binds, site], check=True, timeout=DEADLINE_S)
        self.run(f"{PSRT} service install")
        folder = "/etc/systemd/system/psrt-pserver@.service.d"
        lines = rf"[Service]\nEnvironment={VARIABLES}\nWatchdogSec=3s\n"
        self.run(f"mkdir -p {folder}; printf '{lines}' > {folder}/test.conf")
        self.run("systemctl daemon-reload")

    def down(self) -> None:
        subprocess.run([BOX, "down", self._directory], check=True, timeout=DEADLINE_S)

    def run(self, command: str) -> str:
        words = [BOX, "in", self._directory, "bash", "-c", command]
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def fact(self, name: str) -> str:
        return self.run(f"systemctl show -P {name} {UNIT}").strip()

    def wait_for(self, name: str, value: str) -> None:
        deadline_s = time.monotonic() + DEADLINE_S
        while (found := self.fact(name)) != value:
            assert time.monotonic() < deadline_s, f"{name} is {found}, not {value}"
            time.sleep(0.1)

    def journal(self) -> str:
        return self.run(f"journalctl --no-pager -o cat -u {UNIT}")


@pytest.fixture(scope="module")
def box() -> Iterator[SystemdBox]:
    found = SystemdBox(Path(f"/run/psrt-box-{os.getpid()}"))
    try:
        found.up()
        yield found
    finally:
        found.down()


def test_a_pserver_starts_restarts_and_stops_in_order(box: SystemdBox) -> None:
    box.run("install -m 700 -d /etc/credstore")
    box.run(f"{PSRT} token create pservers --scope admin --file /etc/credstore/psrt.tokens")
    box.run(f"systemctl start {UNIT}")
    assert box.fact("StatusText") == "waits for trainers"
    assert "psrt-6170.sock" in box.run("ls /run/psrt/pserver-6170")
    assert box.run("stat -c %U /var/cache/psrt/kernels").strip() == "psrt"

    box.run(f"systemctl kill -s KILL {UNIT}")
    box.wait_for("NRestarts", "1")
    box.wait_for("ActiveState", "active")
    box.run(f"systemctl reload {UNIT}")
    box.run(f"kill -STOP {box.fact('MainPID')}")
    box.wait_for("NRestarts", "2")
    box.wait_for("ActiveState", "active")
    box.run(f"systemctl stop {UNIT}")

    journal = box.journal()
    assert box.fact("Result") == "success"
    assert "psrt pserver ready on 127.0.0.1:6170" in journal
    assert "the configuration was read again: 0 changes" in journal
    assert "Failed with result 'watchdog'" in journal
    assert "in _await_news" in journal  # the stacks of a process that hung
    assert "stopping: a signal" in journal
