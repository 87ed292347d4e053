"""Failpoints: what arms them, what they do, and that each is reached by the product."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from psrt.core import failpoints
from psrt.core.errors import ConfigError, StorageError
from psrt.pserver.checkpoints import complete_cuts
from psrt.storage.local_directory import LocalDirectory
from tests.support.cuts import write_cuts
from tests.support.processes import ROOT, psrt


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    failpoints.arm("")


def test_an_armed_point_fails_at_the_time_it_names_and_at_no_other() -> None:
    failpoints.arm("cut.before_part=fail@2")

    failpoints.reach("cut.before_part")
    failpoints.reach("cut.after_part")
    with pytest.raises(StorageError, match=r"cut\.before_part"):
        failpoints.reach("cut.before_part")
    failpoints.reach("cut.before_part")


@pytest.mark.parametrize("action", ["kill", "stop"])
def test_an_armed_point_sends_its_process_a_signal(action: str) -> None:
    script = "import sys; from psrt.core.failpoints import arm, reach\n"
    script += "arm(sys.argv[1]); reach('reply.sent')"
    process = subprocess.Popen([sys.executable, "-c", script, f"reply.sent={action}"], cwd=ROOT)

    _, status = os.waitpid(process.pid, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        process.kill()
    process.returncode = -1

    ended_by = os.WSTOPSIG(status) if os.WIFSTOPPED(status) else os.WTERMSIG(status)
    assert ended_by == {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}[action]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("cut.before_part", "not POINT=ACTION"),
        ("cut.before_part=kill@0", "not POINT=ACTION"),
        ("cut.befor_part=kill", "does not exist"),
        ("cut.before_part=explode", "does not have"),
        ("push.after_apply=fail", "does not have"),
    ],
)
def test_a_bad_text_is_refused_and_arms_nothing(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        failpoints.arm(f"reply.sent=kill, {text}")

    failpoints.reach("reply.sent")


def test_a_pserver_refuses_a_bad_failpoint(tmp_path: Path) -> None:
    with psrt(tmp_path / "log", "pserver", "--port", "0", PSRT_FAILPOINT="cut=kill") as pserver:
        assert pserver.exit_code() == 2
        assert "PSRT_FAILPOINT has the point 'cut', which does not exist" in pserver.output


def test_the_product_reaches_every_point_and_no_other() -> None:
    texts = [path.read_text() for path in (ROOT / "psrt").rglob("*.py")]
    reached = [name for text in texts for name in re.findall(r"\breach\(\"([\w.]+)\"\)", text)]

    assert set(reached) == set(failpoints.POINTS)


def test_a_cut_stays_complete_if_older_ones_cannot_be_deleted(tmp_path: Path) -> None:
    directory = LocalDirectory(tmp_path)
    failpoints.arm("cut.after_manifest=fail")

    write_cuts(directory, 2)

    assert complete_cuts(directory) == [1, 2]
