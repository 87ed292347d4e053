"""A whole job as services of a real systemd: training, hangs, cuts, and what the sandbox leaves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.small_job import BATCH, lines, write_files
from tests.support.systemd_box import PSRT, SystemdBox

pytestmark = pytest.mark.slow

TARGET = "psrt.target"
LARGEST_EXPOSURE = 1.5


class ServiceJob:
    """A job of one pserver and one trainer, each a service; `number` makes its names and ports."""

    def __init__(self, box: SystemdBox, number: int, epochs: int, *, durability: str) -> None:
        self.box, self.port = box, 6200 + number
        self.pserver, self.trainer = f"psrt-pserver@{self.port}", "psrt-trainer@0"
        self.folder = f"/srv/jobs/{number}"
        self.cuts, self.model = (f"/var/lib/psrt/{kind}-{number}" for kind in ("cuts", "model"))
        box.run(f"mkdir -p {self.folder}")
        inside = box.root() / self.folder.lstrip("/")
        self._write_job(inside, epochs, durability)
        self._configure("pserver", self.port, CHECKPOINT_DIR=self.cuts, RECOVER="true")
        settings = {"ENDPOINTS": f"127.0.0.1:{self.port}", "SAVE": self.model}
        self._configure("trainer", 0, **settings)
        box.run(f"echo JOB={self.folder}/job.toml >> /etc/psrt/trainer/0.env")

    def start(self) -> None:
        self.box.run(f"systemctl start {self.pserver}")
        self.box.run(f"systemctl start {self.trainer}")

    def round(self) -> int:
        """The round of the pserver, by the line that it gives systemd."""
        found = re.search(r"round ([\d,]+)", self.box.fact(self.pserver, "StatusText"))
        return int(found[1].replace(",", "")) if found else 0

    def wait_for_round(self, least: int) -> None:
        while self.round() < least:  # until the time limit of the test
            assert self.box.fact(self.trainer, "ActiveState") == "active", self.logs()

    def logs(self) -> str:
        return self.box.journal(self.pserver) + self.box.journal(self.trainer)

    def _write_job(self, inside: Path, epochs: int, durability: str) -> None:
        job = write_files(inside, [lines(40 * BATCH, seed=1)], epochs=epochs)
        text = job.read_text().replace("[job]", f'[job]\ndurability = "{durability}"', 1)
        # The process of a trainer that systemd starts again takes over.
        job.write_text(text.replace('mode = "sync"', 'mode = "sync"\non_trainer_loss = "wait"'))
        program, narrow = inside / "program.py", "layers.concat([pooled, x], axis=1)"
        wide = f"layers.fc({narrow}, 20_000)"  # payloads that go into shared memory
        program.write_text(program.read_text().replace(narrow, wide))

    def _configure(self, role: str, name: int, **settings: str) -> None:
        text = "\n".join(f"PSRT_{role.upper()}_{key}={value}" for key, value in settings.items())
        self.box.run(f"echo '{text}' > /etc/psrt/{role}/{name}.env")


def test_a_trainer_is_a_service_that_trains_and_ends(box: SystemdBox) -> None:
    job = ServiceJob(box, 1, epochs=3, durability="none")
    job.start()
    box.wait_for(job.trainer, "ActiveState", "inactive")
    box.wait_for(job.pserver, "ActiveState", "inactive")

    assert box.fact(job.trainer, "Result") == "success"
    assert box.fact(job.pserver, "Result") == "success"
    assert "epoch 3" in box.journal(job.trainer)
    assert "dense" in box.run(f"ls {job.model}")
    assert box.run(f"stat -c %U {job.model}").strip() == "psrt"


def test_a_job_goes_on_after_a_pserver_hung(box: SystemdBox) -> None:
    job = ServiceJob(box, 2, epochs=1_000_000, durability="delta")
    box.drop_in(job.pserver, "WatchdogSec=10s")
    job.start()
    assert box.fact(job.trainer, "ActiveState") == "active"
    job.wait_for_round(10)

    box.run(f"kill -STOP {box.fact(job.pserver, 'MainPID')}")
    box.wait_for(job.pserver, "NRestarts", "1")
    box.wait_for(job.pserver, "ActiveState", "active")
    box.wait_for_line(job.trainer, "was started again and is sent what it has lost")
    reached = job.round()
    job.wait_for_round(reached + 10)

    box.run(f"systemctl stop {TARGET} {job.trainer}")
    box.run(f"systemctl stop {job.pserver}")
    assert box.fact(job.trainer, "Result") == "success"
    assert box.fact(job.trainer, "NRestarts") == "0"
    assert "Failed with result 'watchdog'" in box.journal(job.pserver)


def test_a_killed_trainer_is_started_again_and_goes_on(box: SystemdBox) -> None:
    job = ServiceJob(box, 5, epochs=1_000_000, durability="none")
    job.start()
    job.wait_for_round(10)

    box.run(f"systemctl kill -s KILL {job.trainer}")
    box.wait_for(job.trainer, "NRestarts", "1")
    box.wait_for(job.trainer, "ActiveState", "active")
    reached = job.round()
    job.wait_for_round(reached + 10)
    box.run(f"systemctl stop {job.trainer}")
    box.run(f"systemctl stop {job.pserver}")

    assert reached >= 10
    assert box.fact(job.trainer, "Result") == "success"
    assert box.fact(job.pserver, "NRestarts") == "0"


def test_a_stopped_pserver_leaves_a_durable_cut(box: SystemdBox) -> None:
    job = ServiceJob(box, 3, epochs=1_000_000, durability="none")
    job.start()
    job.wait_for_round(10)
    begun = box.cursor()
    box.run(f"systemctl stop {job.pserver}")

    journal = box.journal(job.pserver, begun)
    assert box.fact(job.pserver, "Result") == "success"
    assert "asks for a cut before it ends" in journal
    assert f"is complete in {job.cuts}" in journal
    assert "complete" in box.run(f"{PSRT} checkpoint list {job.cuts}")
    box.run(f"{PSRT} checkpoint verify {job.cuts} all")
    box.run(f"systemctl stop {job.trainer}; systemctl reset-failed {job.trainer} || true")


def test_the_sandbox_leaves_what_processes_share_and_keep(box: SystemdBox) -> None:
    job = ServiceJob(box, 4, epochs=1_000_000, durability="none")
    job.start()
    job.wait_for_round(10)
    pids = [box.fact(unit, "MainPID") for unit in (job.pserver, job.trainer)]
    maps = [box.run(f"cat /proc/{pid}/maps") for pid in pids]
    sockets = box.run("cat /proc/net/unix")
    report = box.run(f"{PSRT} doctor --dump || true")
    box.run(f"systemctl stop {job.trainer} {job.pserver}")
    begun = box.cursor()
    box.run(f"systemctl start {job.pserver}")
    second_start = box.journal(job.pserver, begun)
    box.run(f"systemctl stop {job.pserver}")

    assert all("/memfd:psrt " in each for each in maps)
    assert all(f"\nprocess {pid}: " in report for pid in pids)
    assert "psrt/pserver/process" in report
    assert f"/run/psrt/pserver-{job.port}/psrt-{job.port}.sock" in sockets
    assert "kernels ready in" in second_start
    assert "compiling kernels" not in second_start
    assert "out of use" not in job.logs()


@pytest.mark.parametrize("unit", ["psrt-pserver@6170", "psrt-trainer@0"])
def test_the_exposure_of_a_loaded_service_is_small(box: SystemdBox, unit: str) -> None:
    report = box.run(f"systemd-analyze security --no-pager {unit}.service")

    level = re.search(r"Overall exposure level for \S+: ([\d.]+)", report)
    assert level is not None, report
    assert float(level[1]) <= LARGEST_EXPOSURE
