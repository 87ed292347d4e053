"""`psrt service`: files of systemd for the system, for a user and for packages."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from psrt.cli.main import run
from psrt.cli.service import rendering
from psrt.cli.service.rendering import InstallTarget, files
from psrt.core.errors import ConfigError

LARGEST_EXPOSURE = 1.5
SERVICES = ("psrt-pserver@.service", "psrt-trainer@.service")
analyzed = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="needs systemd-analyze"
)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """An executable file in place of psrt."""
    path = tmp_path / "psrt"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def installed(root: Path, program: Path, *flags: str) -> Path:
    """The directory of units after an installation below `root`."""
    assert run(["service", "install", "--root", str(root), "--psrt", str(program), *flags]) == 0
    (unit,) = root.rglob("psrt.target")
    return unit.parent


@analyzed
@pytest.mark.parametrize("flags", [(), ("--user",)], ids=["system", "user"])
def test_systemd_finds_no_fault_in_the_files(
    tmp_path: Path, program: Path, flags: tuple[str, ...]
) -> None:
    units = installed(tmp_path / "root", program, *flags)
    names = [str(units / name.replace("@", "@1")) for name in (*SERVICES, "psrt.target")]

    done = subprocess.run(
        ["systemd-analyze", *flags, "verify", *names],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
    )

    assert (done.returncode, done.stderr) == (0, "")


@analyzed
@pytest.mark.parametrize("name", SERVICES)
def test_the_exposure_of_a_service_is_small(tmp_path: Path, program: Path, name: str) -> None:
    unit = installed(tmp_path / "root", program) / name

    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", str(unit)],
        capture_output=True,
        text=True,
        check=True,
    )

    level = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
    assert level is not None
    assert float(level[1]) <= LARGEST_EXPOSURE


def test_an_installation_may_be_repeated_and_removed(
    tmp_path: Path, program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = "--root", str(tmp_path / "root"), "--prefix", "/usr"
    outputs = []
    for words in (["install", "--psrt", str(program)],) * 2 + (["uninstall"],) * 2:
        assert run(["service", *words, *place]) == 0
        outputs.append([line.split()[0] for line in capsys.readouterr().out.splitlines()])

    assert outputs == [["wrote"] * 8, ["unchanged"] * 8, ["removed"] * 8, ["nothing"]]
    assert [path for path in (tmp_path / "root").rglob("*") if path.is_file()] == []


def test_the_status_names_files_of_another_psrt(
    tmp_path: Path, program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    installed(tmp_path, program)
    place = "--root", str(tmp_path)
    capsys.readouterr()

    same = run(["service", "status", *place, "--psrt", str(program)])
    capsys.readouterr()
    other = run(["service", "status", *place, "--psrt", "/opt/psrt/bin/psrt"])
    states = [line.split()[0] for line in capsys.readouterr().out.splitlines()]

    assert (same, other) == (0, 1)
    assert states == ["differs"] * 2 + ["installed"] * 6


def test_a_dry_run_prints_files_and_commands_and_writes_nothing(
    tmp_path: Path, program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "root"
    assert run(["service", "install", "--root", str(root), "--dry-run"]) == 0
    assert run(["service", "install", "--dry-run", "--psrt", str(program)]) == 0
    output = capsys.readouterr().out

    assert not root.exists()
    assert f"ExecStart={program} pserver" in output
    assert output.endswith("/psrt.conf\n# systemctl daemon-reload\n")


def test_files_can_be_read_by_everyone(tmp_path: Path, program: Path) -> None:
    units = installed(tmp_path / "root", program)

    assert {stat.S_IMODE(path.stat().st_mode) for path in units.iterdir()} == {0o644}


def test_a_psrt_in_a_home_directory_is_refused_for_the_system() -> None:
    with pytest.raises(ConfigError, match="/home/ann/bin/psrt lies in a directory"):
        rendering.check_readable("/home/ann/bin/psrt")


def test_the_command_of_a_service_is_one_of_this_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "a b" / "python3"
    python.parent.mkdir()
    monkeypatch.setattr(sys, "executable", str(python))
    without_script = rendering.own_command()
    python.with_name("psrt").touch()

    assert without_script == f'"{python}" -m psrt'
    assert rendering.own_command() == f'"{python.with_name("psrt")}"'


def test_a_service_of_a_user_has_no_keys_of_the_system() -> None:
    texts = files(
        InstallTarget(is_user=True, config_home=Path("/home/ann/.config")), "/opt/psrt"
    ).values()

    assert len(texts) == 3
    for text in texts:
        assert not re.search(
            r"^(User|Group|Private\w+|Protect\w+|CapabilityBoundingSet)=", text, re.M
        )
        assert "multi-user.target" not in text
        assert "Left out" not in text


def test_a_host_without_systemd_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    assert run(["service", "status", "--user"]) == 2
    assert "this host has no systemctl" in capsys.readouterr().err


def test_a_place_that_cannot_be_written_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "etc").write_text("a file")

    assert run(["service", "install", "--root", str(tmp_path), "--psrt", "/usr/bin/psrt"]) == 2
    assert "cannot be changed: Not a directory" in capsys.readouterr().err
