"""The directory of a launch: its name, the link to the latest, and the lock."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from psrt.config.sections import LaunchConfig
from psrt.core.errors import ConfigError
from psrt.launch import run_directory

NOW = datetime(2026, 11, 26, 14, 5, 9)


def test_a_launch_has_a_directory_of_its_name_and_time_and_is_the_latest(tmp_path: Path) -> None:
    config = LaunchConfig(runs=str(tmp_path / "runs"))

    made = run_directory.make(config, "click model/2", NOW)

    assert made == tmp_path / "runs" / "click_model_2-20261126-140509"
    assert (tmp_path / "runs" / "latest").resolve() == made.resolve()


def test_launches_of_one_second_have_directories_of_their_own(tmp_path: Path) -> None:
    config = LaunchConfig(runs=str(tmp_path))

    names = [run_directory.make(config, "a", NOW).name for _ in range(3)]

    assert names == [f"a-20261126-140509{end}" for end in ("", "-2", "-3")]
    assert (tmp_path / "latest").readlink() == Path("a-20261126-140509-3")


def test_a_directory_that_is_named_is_taken_as_it_is(tmp_path: Path) -> None:
    config = LaunchConfig(log_dir=str(tmp_path / "logs"), runs=str(tmp_path / "runs"))

    made = run_directory.make(config, "a", NOW)

    assert made == tmp_path / "logs"
    assert [each.name for each in tmp_path.iterdir()] == ["logs"]


def test_a_second_launch_in_a_directory_is_refused_while_the_first_runs(tmp_path: Path) -> None:
    with (
        run_directory.held(tmp_path),
        pytest.raises(ConfigError, match=f"another launch runs in {tmp_path}"),
        run_directory.held(tmp_path),
    ):
        pass

    with run_directory.held(tmp_path):
        assert list(tmp_path.iterdir()) == []
