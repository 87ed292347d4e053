"""Files of services written and removed, and the commands of systemd that follow."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from psrt.cli.service.rendering import InstallTarget
from psrt.core import whole_file
from psrt.core.errors import ConfigError

MISSING, DIFFERS, INSTALLED = "missing", "differs", "installed"


def states(files: Mapping[Path, str]) -> dict[Path, str]:
    """States of the files by path: missing, differs or installed."""
    return {path: _state(path, text) for path, text in files.items()}


def write(files: Mapping[Path, str]) -> list[str]:
    """Write files that are missing or differ; returns a line for each file."""
    lines = []
    for path, state in states(files).items():
        if state != INSTALLED:
            _write(path, files[path])
        done = {MISSING: "wrote", DIFFERS: "replaced", INSTALLED: "unchanged"}[state]
        lines.append(f"{done:<10}{path}")
    return lines


def remove(paths: Sequence[Path]) -> list[str]:
    """Remove files that are there; returns a line for each of these."""
    lines = []
    for path in paths:
        try:
            path.unlink()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise _not_written(path, error) from error
        lines.append(f"{'removed':<10}{path}")
    return lines


def commands_after(target: InstallTarget, is_installed: bool) -> list[list[str]]:
    """Commands by which systemd takes note of the files, in order."""
    reload = ["systemctl", *_of(target), "daemon-reload"]
    if target.is_user or not is_installed:
        return [reload]
    users, places = (target.directory(kind) / "psrt.conf" for kind in ("sysusers", "tmpfiles"))
    return [["systemd-sysusers", str(users)], ["systemd-tmpfiles", "--create", str(places)], reload]


def run(command: Sequence[str]) -> str:
    """Run a command of systemd; returns its output. Raises `ConfigError`."""
    check_present(command[0])
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ConfigError(
            f"{' '.join(command)} failed: {done.stderr.strip() or done.returncode}",
            hint="Correct that, and run the same psrt service command again: it goes on.",
        )
    return done.stdout


def check_present(program: str) -> None:
    """Raise `ConfigError` on a host without systemd."""
    if shutil.which(program) is None:
        raise ConfigError(
            f"this host has no {program}; services need systemd.",
            hint="psrt service install --root DIR writes the files for another host.",
        )


def services(target: InstallTarget) -> list[str]:
    """Unit, and states of loading, activity and the manager's details, of psrt's services."""
    words = ["list-units", "--all", "--plain", "--no-legend", "--no-pager", "psrt-*"]
    return run(["systemctl", *_of(target), *words]).splitlines()


def _of(target: InstallTarget) -> list[str]:
    return ["--user"] if target.is_user else []


def _state(path: Path, text: str) -> str:
    try:
        return INSTALLED if path.read_text(encoding="utf-8") == text else DIFFERS
    except OSError:
        return MISSING


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        whole_file.write(path, text)
        path.chmod(0o644)
    except OSError as error:
        raise _not_written(path, error) from error


def _not_written(path: Path, error: OSError) -> ConfigError:
    return ConfigError(
        f"{path} cannot be changed: {error.strerror}.",
        hint="Services of the system belong to root: use sudo, or --user for services of yours.",
    )
