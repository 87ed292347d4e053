"""Files of systemd for one host: templates of `units/` with the paths of this psrt.

A service of a user has no rights to most of the sandbox, and no user of its own; it gets the rest.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from psrt.core.errors import ConfigError

TEMPLATES = Path(__file__).with_name("units")
UNITS = ("psrt-pserver@.service", "psrt-trainer@.service", "psrt.target")
EXAMPLES = {
    "psrt.toml.example": "psrt.toml.example",
    "pserver.env.example": "pserver/PORT.env.example",
    "trainer.env.example": "trainer/NUMBER.env.example",
}
"""Examples of settings, and their places in the directory of settings."""
_PROGRAM = "/usr/bin/psrt"
_OF_USERS = ("/home", "/root", "/run/user", "/tmp", "/var/tmp")
_FOR_SYSTEM = {
    *("User", "Group", "LoadCredential", "CapabilityBoundingSet", "DevicePolicy"),
    *("PrivateDevices", "PrivateMounts", "PrivateTmp", "PrivateUsers", "ProtectClock"),
    *("ProtectControlGroups", "ProtectHome", "ProtectHostname", "ProtectKernelLogs"),
    *("ProtectKernelModules", "ProtectKernelTunables", "ProtectProc", "ProtectSystem"),
    *("Wants", "After"),
}
"""Keys that a user's manager has no rights for, or that name units which it does not have."""


@dataclass(frozen=True)
class InstallTarget:
    """The place of services: of the system or of one user, of this host or of a package.

    Files of a package lie below `root`, which is not part of the paths in them. `prefix` is "" for
    files that an administrator installs, else e.g. /usr. `config_home` is that of the user.
    """

    is_user: bool = False
    root: Path = Path("/")
    prefix: str = ""
    config_home: Path = Path()

    @property
    def is_this_host(self) -> bool:
        return self.root == Path("/")

    def directory(self, kind: str) -> Path:
        """The directory of files of one kind: systemd, sysusers or tmpfiles."""
        if kind == "systemd":
            kind = "systemd/user" if self.is_user else "systemd/system"
        else:
            kind = f"{kind}.d"
        if self.prefix:
            return self._below(f"{self.prefix}/lib/{kind}")
        return self._below(f"{self.config_home}/{kind}" if self.is_user else f"/etc/{kind}")

    @property
    def examples(self) -> Path:
        """The directory of examples: that of settings, or of a package's data."""
        return self._below(f"{self.prefix}/share/psrt" if self.prefix else "/etc/psrt")

    def _below(self, path: str) -> Path:
        return self.root / path.lstrip("/")


def files(target: InstallTarget, command: str) -> Mapping[Path, str]:
    """The text of each file to install; `command` starts psrt."""
    units = {target.directory("systemd") / name: _unit(name, target, command) for name in UNITS}
    if target.is_user:
        return units
    others = {
        target.directory(kind) / "psrt.conf": _template(f"psrt.{kind}.conf")
        for kind in ("sysusers", "tmpfiles")
    }
    examples = {target.examples / place: _template(name) for name, place in EXAMPLES.items()}
    return units | others | examples


def own_command() -> str:
    """The command that starts this psrt, as a service writes it."""
    program = Path(sys.executable).with_name("psrt")
    if program.is_file():
        return _escaped(str(program))
    return f"{_escaped(sys.executable)} -m psrt"


def check_readable(command: str) -> None:
    """Raise `ConfigError` if services of the system cannot read the psrt of this `command`."""
    for place in (Path(command.split()[0]), Path(sys.base_prefix).resolve()):
        if any(place.is_relative_to(folder) for folder in _OF_USERS):
            raise ConfigError(
                f"{place} lies in a directory that services of the system cannot read; nothing was "
                "installed.",
                hint="Install psrt and its Python outside of home directories, such as by "
                "/usr/bin/python3 -m venv /opt/psrt, and run psrt service install from there. Or "
                "install services of this user: psrt service install --user.",
            )


def _unit(name: str, target: InstallTarget, command: str) -> str:
    text = _template(name).replace(_PROGRAM, command)
    return _for_user(text) if target.is_user else text


def _for_user(text: str) -> str:
    """The unit without keys of the system, nor the comments above them."""
    kept: list[str] = []
    for line in text.splitlines():
        if line.partition("=")[0] not in _FOR_SYSTEM:
            kept.append(line)
            continue
        while kept and kept[-1].startswith("#"):
            kept.pop()
    rendered = "\n".join(kept).replace("multi-user.target", "default.target")
    return rendered.replace("/etc/psrt", "~/.config/psrt") + "\n"


def _template(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _escaped(path: str) -> str:
    """A path as a word of `ExecStart=`."""
    text = path.replace("%", "%%").replace("$", "$$")
    return f'"{text}"' if any(c.isspace() for c in text) else text
