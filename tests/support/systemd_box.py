"""A real systemd in a box of namespaces, with the services of psrt installed from this checkout."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Sequence
from pathlib import Path

from psrt.kernels import cache

ROOT = Path(__file__).resolve().parents[2]
BOX = Path(__file__).with_name("systemd_box.sh")
VARIABLES = (
    "PYTHONPATH=/srv/psrt:/srv/site",
    "LD_LIBRARY_PATH=/opt/py/lib",
    "PYTHONDONTWRITEBYTECODE=1",
)
PYTHON = "/opt/py/bin/python3"
PSRT = f"env {' '.join(VARIABLES)} {PYTHON} -m psrt"
DEADLINE_S = 120.0


def missing() -> str:
    """The thing that this host lacks for a box; "" if nothing."""
    if os.getuid() != 0:
        return "needs root"
    if shutil.which("unshare") is None or not Path("/lib/systemd/systemd").exists():
        return "needs systemd and unshare"
    if not Path("/sys/fs/cgroup/systemd").exists():
        return "needs control groups of version 1"
    return ""


class SystemdBox:
    """Use as a context manager; `run` and `start` run commands inside, as root."""

    def __init__(self, directory: Path) -> None:
        self._directory = str(directory)

    def __enter__(self) -> SystemdBox:
        try:
            self._up()
        except BaseException:
            self._down()
            raise
        return self

    def __exit__(self, *ended: object) -> None:
        self._down()

    def root(self) -> Path:
        """The root directory of the box, as seen from this host."""
        return Path(f"/proc/{(Path(self._directory) / 'pid').read_text().strip()}/root")

    def run(self, command: str) -> str:
        """The output of a command that succeeds."""
        done = subprocess.run(
            self.words(command), capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def words(self, command: str) -> Sequence[str]:
        return [str(BOX), "in", self._directory, "bash", "-c", command]

    def drop_in(self, unit: str, *lines: str) -> None:
        """Lines of the section [Service] that an administrator adds to a unit or a template.

        Files of one name would replace each other, so each has that of its unit.
        """
        folder = f"/etc/systemd/system/{unit}.service.d"
        text = shlex.quote("\n".join(["[Service]", *lines, ""]))
        self.run(f"mkdir -p {folder}; printf %s {text} > {folder}/{unit}.conf")
        self.run("systemctl daemon-reload")

    def fact(self, unit: str, name: str) -> str:
        """A property of a unit, such as ActiveState."""
        return self.run(f"systemctl show -P {name} {unit}").strip()

    def wait_for(self, unit: str, name: str, value: str) -> None:
        """Wait until a property of a unit has a value; a failure has the journal's end."""
        deadline_s = time.monotonic() + DEADLINE_S
        while (found := self.fact(unit, name)) != value:
            late = time.monotonic() > deadline_s
            assert not late, f"{name} of {unit} is {found}, not {value}:\n{self.journal(unit)}"
            time.sleep(0.1)

    def wait_for_line(self, unit: str, text: str, since: str = "") -> None:
        """Wait until the journal of a unit has `text`, in lines after the cursor `since`."""
        deadline_s = time.monotonic() + DEADLINE_S
        while text not in (found := self.journal(unit, since)):
            assert time.monotonic() < deadline_s, f"{unit} did not write {text!r}:\n{found}"
            time.sleep(0.1)

    def journal(self, unit: str, since: str = "") -> str:
        after = f"--after-cursor={shlex.quote(since)}" if since else ""
        return self.run(f"journalctl --no-pager -o cat -u {unit} {after}")

    def cursor(self) -> str:
        """The present end of the journal."""
        *_, last = self.run("journalctl --sync; journalctl --no-pager -n 0 --show-cursor").split()
        return last

    def _up(self) -> None:
        binds = f"{ROOT}:/srv/psrt", f"{sys.base_prefix}:/opt/py"
        site = f"{sysconfig.get_paths()['purelib']}:/srv/site"
        cache.directory().mkdir(parents=True, exist_ok=True)
        kernels = f"{cache.directory()}:/srv/kernels"
        up = [BOX, "up", self._directory, *binds, site, kernels]
        subprocess.run(up, check=True, timeout=DEADLINE_S)
        self.run(f"{PSRT} service install")
        self._copy_kernels()
        variables = [f"Environment={each}" for each in VARIABLES]
        for template in ("psrt-pserver@", "psrt-trainer@"):
            self.drop_in(template, *variables)

    def _copy_kernels(self) -> None:
        """Give services what this host has compiled, which takes minutes on a busy one."""
        kept = "/var/cache/psrt/kernels"
        self.run(f"mkdir -p {kept}; cp -r /srv/kernels {kept}/{cache.fingerprint()}")
        self.run(f"chown -R psrt:psrt {kept}; chmod 700 {kept}")

    def _down(self) -> None:
        subprocess.run([BOX, "down", self._directory], check=True, timeout=DEADLINE_S)
