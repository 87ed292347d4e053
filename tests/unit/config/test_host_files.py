"""Configuration files of a host: their order, what they may hold, and credentials of systemd."""

from __future__ import annotations

from pathlib import Path

import pytest

from psrt.config import host_files
from psrt.config.load import load
from psrt.config.reload import reloaded
from psrt.config.sections import PserverConfig, TrainerConfig
from psrt.core.errors import ConfigError


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory in place of /etc/psrt."""
    monkeypatch.setattr(host_files, "SYSTEM", tmp_path / "etc")
    return write(tmp_path / "etc" / "psrt.toml", "port = 1\nstripes = 1\nports_num = 1").parent


def write(path: Path, lines: str, section: str = "pserver") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"[{section}]\n{lines}\n")
    return path


def test_later_files_override_earlier_ones(system: Path, tmp_path: Path) -> None:
    write(system / "conf.d" / "20.toml", "port = 3")
    write(system / "conf.d" / "10.toml", "port = 2\nstripes = 2")
    write(system / "conf.d" / "30.conf", "port = 9")
    own = write(tmp_path / "home" / ".config" / "psrt" / "psrt.toml", "ports_num = 4")

    loaded = load(PserverConfig, environ={"HOME": str(tmp_path / "home")}, with_host=True)

    assert (loaded.config.port, loaded.config.stripes, loaded.config.ports_num) == (3, 2, 4)
    assert loaded.origins["pserver.port"] == str(system / "conf.d" / "20.toml")
    assert loaded.origins["pserver.ports_num"] == str(own)


def test_variables_flags_and_a_job_file_override_the_host(system: Path, tmp_path: Path) -> None:
    job = str(write(tmp_path / "job.toml", "stripes = 5"))

    config = load(
        *(PserverConfig,),
        flags={"ports_num": 7},
        file=job,
        environ={"PSRT_PSERVER_PORT": "6"},
        with_host=True,
    ).config

    assert (config.stripes, config.port, config.ports_num) == (5, 6, 7)


def test_a_variable_names_the_only_file(system: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "other.toml", "port = 8")

    config = load(PserverConfig, environ={"PSRT_CONFIG": str(other)}, with_host=True).config

    assert (config.port, config.stripes) == (8, 0)
    with pytest.raises(ConfigError, match="cannot be read"):
        load(PserverConfig, environ={"PSRT_CONFIG": str(tmp_path / "none.toml")}, with_host=True)


def test_other_loads_do_not_read_the_host(system: Path) -> None:
    assert load(PserverConfig, environ={}).config == PserverConfig()


def test_a_section_of_a_job_is_refused(system: Path) -> None:
    write(system / "conf.d" / "job.toml", "seed = 1", section="job")

    with pytest.raises(ConfigError, match=r"section \[job\] is not one of a host"):
        load(PserverConfig, environ={}, with_host=True)


def test_a_token_file_may_be_a_credential(system: Path, tmp_path: Path) -> None:
    environ = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    without = load(PserverConfig, environ=environ)
    for name in ("psrt.tokens", "psrt.token"):
        (tmp_path / name).touch()
    of_pserver = load(PserverConfig, environ=environ)
    named = load(PserverConfig, flags={"token_file": "a.toml"}, environ=environ)

    assert without.config.token_file == ""
    assert of_pserver.config.token_file == str(tmp_path / "psrt.tokens")
    assert of_pserver.origins["pserver.token_file"] == "credential psrt.tokens"
    assert load(TrainerConfig, environ=environ).config.token_file == str(tmp_path / "psrt.token")
    assert named.config.token_file == "a.toml"


def test_a_reload_takes_some_settings_and_keeps_others() -> None:
    running, read = PserverConfig(), PserverConfig(log_level="debug", stripes=3)

    found = reloaded("pserver", running, read)

    assert found.config == PserverConfig(log_level="debug")
    assert found.changed == ("pserver.log_level is 'debug' from now on",)
    assert [line[:25] for line in found.kept] == ["pserver.stripes stays 0, "]
