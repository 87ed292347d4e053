"""A save that is killed at any step leaves a complete model, and what comes next finds it."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from psrt.core.errors import ConfigError, DataError, ErrorCode
from psrt.trainer.models import replacement
from psrt.trainer.models.export import check_target
from tests.support.killed_saves import save_version, version_of
from tests.support.processes import clean_environment

LEAST_STEPS = 10


def an_earlier_model(start: Path) -> None:
    save_version(start / "model", 1)


def a_link_to_an_earlier_model(start: Path) -> None:
    save_version(start / "versions" / "a", 1)
    (start / "model").symlink_to("versions/a")


def an_empty_directory(start: Path) -> None:
    (start / "model").mkdir()


def nothing(start: Path) -> None:
    pass


WITH_A_MODEL = [an_earlier_model, a_link_to_an_earlier_model]
WITHOUT_A_MODEL = [nothing, an_empty_directory]


def kill_saves(
    root: Path, starts: dict[str, Callable[[Path], None]]
) -> Callable[[str], list[Path]]:
    """Kill a save at each step, from each start.

    Returns the directories of a start, in order; only the save of the last one was completed.
    """
    for name, prepare in starts.items():
        (root / name / "start").mkdir(parents=True)
        prepare(root / name / "start")
    command = [sys.executable, "-m", "tests.support.killed_saves"]
    roots = [str(root / name) for name in starts]
    subprocess.run([*command, *roots], check=True, env=clean_environment())

    def killed(name: str) -> list[Path]:
        found = [path for path in (root / name).iterdir() if path.name != "start"]
        assert len(found) > LEAST_STEPS
        return sorted(found, key=lambda path: int(path.name))

    return killed


@pytest.fixture(scope="module")
def every_kill(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[Path]]:
    starts = {each.__name__: each for each in WITH_A_MODEL + WITHOUT_A_MODEL}
    return kill_saves(tmp_path_factory.mktemp("killed"), starts)


@pytest.fixture
def killed(
    every_kill: Callable[[str], list[Path]], tmp_path: Path
) -> Callable[[Callable[[Path], None]], list[Path]]:
    """Copies of the directories in which saves were killed."""

    def copies(prepare: Callable[[Path], None]) -> list[Path]:
        return [
            Path(shutil.copytree(place, tmp_path / place.name, symlinks=True))
            for place in every_kill(prepare.__name__)
        ]

    return copies


@pytest.mark.parametrize("prepare", WITH_A_MODEL)
def test_after_a_kill_at_any_step_the_old_or_the_new_model_loads(killed, prepare) -> None:
    versions = [version_of(place / "model") for place in killed(prepare)]

    assert set(versions) == {1, 2}
    assert versions == sorted(versions)


@pytest.mark.parametrize("prepare", WITHOUT_A_MODEL)
def test_after_a_kill_of_a_first_save_no_model_or_the_whole_one_loads(killed, prepare) -> None:
    versions = [version_or_none(place / "model") for place in killed(prepare)]

    assert set(versions) == {0, 2}
    assert versions == sorted(versions)


def version_or_none(directory: Path) -> int:
    try:
        return version_of(directory)
    except DataError as error:
        if error.code != ErrorCode.MODEL_UNREADABLE:
            raise
        return 0


@pytest.mark.parametrize("prepare", WITH_A_MODEL + WITHOUT_A_MODEL)
def test_after_a_kill_at_any_step_the_next_save_succeeds_and_leaves_nothing_behind(
    killed, prepare
) -> None:
    for place in killed(prepare):
        before = {path.name for path in place.iterdir()} - {"model.tmp", "model.previous"}

        save_version(place / "model", 3)

        assert version_of(place / "model") == 3
        assert {path.name for path in place.iterdir()} == before | {"model"}


def test_a_next_save_that_is_killed_too_leaves_the_old_or_the_new_model(
    every_kill, tmp_path: Path
) -> None:
    def copy_of(place: Path) -> Callable[[Path], None]:
        return lambda start: shutil.copytree(place, start, symlinks=True, dirs_exist_ok=True)

    starts = {place.name: copy_of(place) for place in every_kill("an_earlier_model")[-12::4]}

    killed_twice = kill_saves(tmp_path, starts)

    for name in starts:
        assert {version_of(place / "model") for place in killed_twice(name)} <= {1, 2}


@pytest.fixture
def between_renames(tmp_path: Path) -> Path:
    """A directory whose save ended between its two renames: old is 1, new is 2."""
    save_version(tmp_path / "model", 2)
    (tmp_path / "model").rename(tmp_path / "new")
    save_version(tmp_path / "model", 1)
    (tmp_path / "model").rename(tmp_path / "model.previous")
    (tmp_path / "new").rename(tmp_path / "model.tmp")
    return tmp_path / "model"


def test_finishing_a_killed_save_is_logged(
    between_renames: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert version_of(between_renames) == 2

    assert [path.name for path in between_renames.parent.iterdir()] == ["model"]
    assert "its save was killed before it became" in caplog.text


def test_checking_the_target_before_training_finishes_a_killed_save(between_renames: Path) -> None:
    check_target(between_renames)

    assert version_of(between_renames) == 2


def test_a_save_that_is_alive_between_its_renames_is_waited_for(
    between_renames: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unfinished = replacement.unfinished(between_renames)
    claim = os.open(unfinished, os.O_RDONLY)
    fcntl.flock(claim, fcntl.LOCK_EX)
    monkeypatch.setattr(time, "sleep", lambda _: unfinished.rename(between_renames))

    assert version_of(between_renames) == 2
    os.close(claim)


def test_a_save_that_is_stuck_between_its_renames_is_named(
    between_renames: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = os.open(replacement.unfinished(between_renames), os.O_RDONLY)
    fcntl.flock(claim, fcntl.LOCK_EX)
    monkeypatch.setattr(replacement, "PATIENCE_S", 0.0)

    with pytest.raises(DataError, match=r"Another save is under way in .*model\.tmp"):
        version_of(between_renames)
    os.close(claim)


def test_a_killed_save_that_cannot_be_finished_says_how(
    between_renames: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "rename", refuse)

    with pytest.raises(DataError, match=r"complete in .*model\.tmp") as caught:
        version_of(between_renames)
    assert caught.value.code == ErrorCode.MODEL_UNREADABLE
    assert f"mv {between_renames}.tmp {between_renames}" in caught.value.hint


def test_an_earlier_model_without_a_new_one_is_named(between_renames: Path) -> None:
    shutil.rmtree(f"{between_renames}.tmp")

    with pytest.raises(DataError, match=r"model\.previous is a complete earlier model") as caught:
        version_of(between_renames)
    assert f"mv {between_renames}.previous {between_renames}" in caught.value.hint


def test_a_torn_manifest_is_not_taken_for_a_complete_model(between_renames: Path) -> None:
    manifest = Path(f"{between_renames}.tmp") / "manifest.json"
    manifest.write_text(manifest.read_text()[:-10])

    with pytest.raises(DataError, match=r"model\.previous is a complete earlier model"):
        version_of(between_renames)


@pytest.mark.parametrize("name", ["model.tmp", "model.previous"])
def test_names_that_psrt_needs_itself_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="unfinished and earlier models"):
        check_target(tmp_path / name)


def test_everything_is_synced_before_a_model_gets_its_name_and_then_its_name_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    sync, rename = os.fsync, Path.rename

    def watched_sync(descriptor: int) -> None:
        events.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        sync(descriptor)

    def watched_rename(path: Path, target: Path) -> Path:
        events.append("rename")
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", watched_sync)
    monkeypatch.setattr(Path, "rename", watched_rename)

    save_version(tmp_path / "model", 1)

    at = events.index("rename")
    model = tmp_path / "model"
    written = {Path(e.replace("model.tmp", "model").split(".json.")[0]) for e in events[:at]}
    needed = {p.with_suffix("") if p.name == "manifest.json" else p for p in model.rglob("*")}
    assert needed | {model} <= written
    assert events[at + 1 :] == [str(tmp_path)]
