"""`psrt service` under a real systemd: services of a user, and removal."""

from __future__ import annotations

import pytest

from tests.support.systemd_box import PSRT, VARIABLES, SystemdBox

pytestmark = pytest.mark.slow

AS_USER = "export XDG_RUNTIME_DIR=/run/user/0;"
UNITS = "/root/.config/systemd/user"


def test_a_user_runs_a_pserver(box: SystemdBox) -> None:
    unit = "psrt-pserver@6190"
    lines = "\n".join(["[Service]", *(f"Environment={each}" for each in VARIABLES)])
    box.run("systemctl start user@0")
    box.run(f"{AS_USER} {PSRT} service install --user")
    box.run(f"mkdir -p {UNITS}/{unit}.service.d; echo '{lines}' > {UNITS}/{unit}.service.d/a.conf")
    box.run(f"{AS_USER} systemctl --user daemon-reload; systemctl --user start {unit}")
    status = box.run(f"{AS_USER} systemctl --user show -P StatusText {unit}")
    box.run(f"{AS_USER} systemctl --user stop {unit}")
    result = box.run(f"{AS_USER} systemctl --user show -P Result {unit}")
    box.run(f"{AS_USER} {PSRT} service uninstall --user; systemctl stop user@0")

    assert status.strip() == "waits for trainers"
    assert result.strip() == "success"


def test_services_that_run_are_not_removed(box: SystemdBox) -> None:
    unit = "psrt-pserver@6191"
    box.run(f"systemctl start {unit}")
    refused = box.run(f"{PSRT} service uninstall 2>&1 || echo rc $?")
    shown = box.run(f"{PSRT} service status")
    box.run(f"systemctl stop {unit}")
    removed = box.run(f"{PSRT} service uninstall")
    left = box.run("systemctl list-unit-files --no-legend 'psrt*' || true")
    box.run(f"{PSRT} service install")  # other tests go on

    assert f"{unit}.service run; nothing was removed" in refused
    assert refused.endswith("rc 2\n")
    assert f"{unit}.service loaded active running" in " ".join(shown.split())
    assert "removed   /etc/systemd/system/psrt-pserver@.service" in removed
    assert left == ""
