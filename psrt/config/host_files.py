"""Configuration files of a host, for its pservers and trainers.

    /etc/psrt/psrt.toml, /etc/psrt/conf.d/*.toml                    of the system
    ~/.config/psrt/psrt.toml, ~/.config/psrt/conf.d/*.toml          of a user (XDG_CONFIG_HOME)

A later file overrides an earlier one, in this order; files of conf.d in the order of their names.
They are optional. `PSRT_CONFIG` names one file that takes their place.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from psrt.config.validate import TomlFile, read_toml
from psrt.core.errors import ConfigError, ErrorCode

VARIABLE = "PSRT_CONFIG"
SYSTEM = Path("/etc/psrt")
SECTIONS = ("pserver", "trainer")


def host_files(environ: Mapping[str, str], system: Path | None = None) -> list[TomlFile]:
    """The files of this host, the one of highest precedence first; raises `ConfigError`."""
    paths = _paths(environ, SYSTEM if system is None else system)
    return [_read(path) for path in reversed(paths)]


def _paths(environ: Mapping[str, str], system: Path) -> list[Path]:
    if path := environ.get(VARIABLE):
        return [Path(path)]
    folders = [system]
    if base := environ.get("XDG_CONFIG_HOME"):
        folders.append(Path(base, "psrt"))
    elif home := environ.get("HOME"):
        folders.append(Path(home, ".config", "psrt"))
    return [path for folder in folders for path in _of_folder(folder)]


def _of_folder(folder: Path) -> list[Path]:
    first = folder / "psrt.toml"
    return [*([first] if first.is_file() else []), *sorted(folder.glob("conf.d/*.toml"))]


def _read(path: Path) -> TomlFile:
    found = read_toml(str(path))
    for section in found.tables:
        if section not in SECTIONS:
            raise ConfigError(
                f"{path}: section [{section}] is not one of a host.",
                code=ErrorCode.CONFIG_UNKNOWN_KEY,
                hint=f"It may have {' and '.join(f'[{s}]' for s in SECTIONS)}; jobs have files of "
                "their own.",
            )
    return found
