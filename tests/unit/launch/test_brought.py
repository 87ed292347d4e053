"""Files that a launch sends to hosts which do not share the job's directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from psrt.config.load import load, load_job
from psrt.config.sections import LaunchConfig
from psrt.core.errors import ConfigError
from psrt.launch import brought
from psrt.launch.brought import brought_files


@pytest.fixture
def job(tmp_path: Path) -> Path:
    directory = tmp_path / "job"
    (directory / "layers").mkdir(parents=True)
    (directory / "train.py").write_text("build = 1")
    (directory / "layers" / "own.py").write_text("own = 1")
    (directory / "big.bin").write_bytes(bytes(2 << 20))
    (directory / "job.toml").write_text('[job]\nprogram = "train.py"\n')
    return directory / "job.toml"


def files_of(job: Path, bring: str) -> dict[str, bytes]:
    flags = {"job": str(job), "bring": bring}
    return brought_files(load(LaunchConfig, flags=flags).config, load_job(str(job)).config)


def test_job_file_and_program_are_sent_along_with_what_the_patterns_match(job: Path) -> None:
    files = files_of(job, "**/*.py")

    assert list(files) == ["job.toml", "layers/own.py", "train.py"]
    assert files["layers/own.py"] == b"own = 1"


def test_a_pattern_without_files_is_an_error(job: Path) -> None:
    with pytest.raises(ConfigError, match=r"matches 'data/\*'"):
        files_of(job, "*.py,data/*")


def test_a_program_outside_the_jobs_directory_cannot_be_sent(job: Path) -> None:
    job.write_text('[job]\nprogram = "../train.py"\n')
    (job.parent.parent / "train.py").write_text("")

    with pytest.raises(ConfigError, match="is not below the job's directory"):
        files_of(job, "*.py")


def test_more_than_the_limit_is_refused_and_the_largest_file_named(
    job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(brought, "LIMIT_BYTES", 1 << 20)

    with pytest.raises(ConfigError, match=r"send 2 MiB .* the largest file is big\.bin"):
        files_of(job, "*")
