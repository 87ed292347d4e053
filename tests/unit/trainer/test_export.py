"""A model directory is complete or absent, holds what was saved, and says what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from psrt.core.errors import ConfigError, DataError, ErrorCode
from psrt.core.specs import Adagrad, Constant, ConstantRate, SparseTableSpec, Uniform
from psrt.core.types import F32, I64
from psrt.trainer.models.export import check_target, save
from psrt.trainer.models.model_dir import Manifest, digest
from psrt.trainer.models.saved_model import load

TABLE = SparseTableSpec("emb/x", 2, Constant(0.5), Adagrad(), ConstantRate(0.1), seed=7)
PAGES = [
    (np.array([9, -3], np.int64), np.array([[9.0, 9.5], [-3.0, -3.5]], np.float32)),
    (np.array([], np.int64), np.empty((0, 2), np.float32)),
    (np.array([4], np.int64), np.array([[4.0, 4.5]], np.float32)),
]
WEIGHT = np.arange(6, dtype=np.float32).reshape(2, 3)


def pages() -> list[tuple[I64, F32]]:
    return PAGES


def save_model(directory: Path, table: SparseTableSpec = TABLE) -> Manifest:
    manifest = Manifest("job", "psrt test", "program text\n", [table])
    return save(directory, manifest, {"fc/w": WEIGHT}, {table.name: pages})


def assert_unreadable(directory: Path, match: str) -> None:
    with pytest.raises(DataError, match=match) as caught:
        load(directory)
    assert caught.value.code == ErrorCode.MODEL_UNREADABLE


def test_dense_values_and_rows_come_back_as_they_were_saved(tmp_path: Path) -> None:
    save_model(tmp_path / "model")

    model = load(tmp_path / "model")

    np.testing.assert_array_equal(model.dense["fc/w"], WEIGHT)
    rows = model.pull_rows({"emb/x": np.array([4, 9, -3, 4], np.int64)})["emb/x"]
    np.testing.assert_array_equal(rows, [[4, 4.5], [9, 9.5], [-3, -3.5], [4, 4.5]])


def test_the_manifest_counts_rows_and_keeps_program_and_specs(tmp_path: Path) -> None:
    save_model(tmp_path / "model")

    plain = json.loads((tmp_path / "model" / "manifest.json").read_text())

    assert (plain["format"], plain["version"], plain["rows"]) == ("psrt-model", 1, {"emb/x": 3})
    assert plain["program"] == "program text\n"
    assert load(tmp_path / "model").manifest.tables == [TABLE]


def test_a_row_that_was_never_trained_has_its_initial_value(tmp_path: Path) -> None:
    save_model(tmp_path / "model")

    rows = load(tmp_path / "model").pull_rows({"emb/x": np.array([5, 9], np.int64)})["emb/x"]

    np.testing.assert_array_equal(rows, [[0.5, 0.5], [9, 9.5]])


def test_random_initial_values_depend_on_the_id_only(tmp_path: Path) -> None:
    table = SparseTableSpec("u", 2, Uniform(-1, 1), Adagrad(), ConstantRate(0.1), seed=7)
    save_model(tmp_path / "model", table)
    model = load(tmp_path / "model")

    together = model.pull_rows({"u": np.array([100, 200], np.int64)})["u"]
    alone = model.pull_rows({"u": np.array([200], np.int64)})["u"]

    np.testing.assert_array_equal(together[1:], alone)
    assert len(np.unique(together)) == 4


def test_the_padding_row_reads_as_zeros(tmp_path: Path) -> None:
    table = SparseTableSpec("p", 2, Constant(0.5), Adagrad(), ConstantRate(0.1), 7, padding_id=9)
    save_model(tmp_path / "model", table)

    rows = load(tmp_path / "model").pull_rows({"p": np.array([9, 4], np.int64)})["p"]

    np.testing.assert_array_equal(rows, [[0, 0], [4, 4.5]])


def test_a_save_that_breaks_off_leaves_the_earlier_model(tmp_path: Path) -> None:
    save_model(tmp_path / "model")

    def broken() -> list[tuple[I64, F32]]:
        raise RuntimeError("pserver lost")

    with pytest.raises(RuntimeError, match="pserver lost"):
        save(tmp_path / "model", Manifest("job", "", "", [TABLE]), {}, {"emb/x": broken})
    np.testing.assert_array_equal(load(tmp_path / "model").dense["fc/w"], WEIGHT)


def test_saving_again_replaces_the_model_and_leaves_nothing_behind(tmp_path: Path) -> None:
    save_model(tmp_path / "model")

    save(tmp_path / "model", Manifest("job", "", "", []), {"b": WEIGHT + 1}, {})

    assert list(load(tmp_path / "model").dense) == ["b"]
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_directory_that_is_no_model_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("three years of work")

    with pytest.raises(ConfigError, match="not a saved model"):
        check_target(tmp_path)


def test_new_empty_and_earlier_model_directories_may_be_saved_to(tmp_path: Path) -> None:
    save_model(tmp_path / "model")
    (tmp_path / "empty").mkdir()

    for name in ("new", "empty", "model"):
        check_target(tmp_path / name)


def test_a_changed_file_is_found_by_its_checksum(tmp_path: Path) -> None:
    save_model(tmp_path / "model")
    path = tmp_path / "model" / "dense" / "fc%2Fw.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")

    assert_unreadable(tmp_path / "model", r"fc%2Fw\.npy does not have the checksum")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    save_model(tmp_path / "model")
    (tmp_path / "model" / "sparse" / "emb%2Fx-00001.rows.npy").unlink()

    assert_unreadable(tmp_path / "model", r"emb%2Fx-00001\.rows\.npy cannot be opened")


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    assert_unreadable(tmp_path / "model", "model is not a directory")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "is not JSON"),
        ("[]", "does not say format"),
        ('{"format": "psrt-model", "version": 2}', "is version 2; this psrt reads version 1"),
        ('{"format": "psrt-model", "version": 1}', "is not a manifest"),
        (
            '{"format": "psrt-model", "version": 1, "sha256": {"../x": ""}}',
            "is outside of the directory",
        ),
    ],
)
def test_a_manifest_that_is_not_one_is_refused(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "manifest.json").write_text(text)

    assert_unreadable(tmp_path, says)


def test_pickled_objects_are_refused_even_with_the_right_checksum(tmp_path: Path) -> None:
    manifest = Manifest("job", "", "", [])
    save(tmp_path / "model", manifest, {"w": WEIGHT}, {})
    path = tmp_path / "model" / "dense" / "w.npy"
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)

    text = (tmp_path / "model" / "manifest.json").read_text()
    (tmp_path / "model" / "manifest.json").write_text(
        text.replace(manifest.sha256["dense/w.npy"], digest(path))
    )

    assert_unreadable(tmp_path / "model", r"w\.npy is not an array file")


def test_what_is_no_directory_is_found_out_before_training(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(ConfigError, match=r"cannot be saved\. .*file"):
        check_target(tmp_path / "file" / "model")


def test_a_place_that_takes_no_directory_is_found_out_before_training() -> None:
    with pytest.raises(ConfigError, match=r"cannot be saved\. /proc/model\.tmp"):
        check_target(Path("/proc/model"))


def test_parents_are_made_and_nothing_else(tmp_path: Path) -> None:
    check_target(tmp_path / "runs" / "1" / "model")

    assert [path.name for path in tmp_path.rglob("*")] == ["runs", "1"]


def test_the_directory_that_psrt_runs_in_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ConfigError, match="psrt runs in it"):
        check_target(Path("."))


def test_a_link_stays_and_the_directory_behind_it_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "model")

    for _ in range(2):
        check_target(tmp_path / "link")
        save_model(tmp_path / "link")

    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "model"]
    assert (tmp_path / "link").is_symlink()


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), OSError("1 written")])
def test_a_disk_without_room_is_told_and_left_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    def full(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(np, "save", full)

    with pytest.raises(ConfigError, match=r"w\.npy: (No space left on device|1 written)\."):
        save_model(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_a_complete_model_that_cannot_get_its_name_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "rename", refuse)

    with pytest.raises(ConfigError, match=r"complete in .*model\.tmp"):
        save_model(tmp_path / "model")

    assert list(load(tmp_path / "model.tmp").dense) == ["fc/w"]


def test_a_save_that_broke_off_makes_room_for_the_next(tmp_path: Path) -> None:
    (tmp_path / "model.tmp" / "dense").mkdir(parents=True)
    (tmp_path / "model.tmp" / "dense" / "half").touch()
    (tmp_path / "model.previous").mkdir()

    check_target(tmp_path / "model")
    save_model(tmp_path / "model")

    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert list(load(tmp_path / "model").dense) == ["fc/w"]


@pytest.mark.parametrize("name", ["model.tmp", "model.previous"])
@pytest.mark.parametrize("refused", [check_target, save_model])
def test_what_a_user_keeps_under_the_names_of_a_save_is_left_alone(
    tmp_path: Path, name: str, refused: Callable[[Path], object]
) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "mine").touch()

    with pytest.raises(ConfigError, match=f"{name} is in the way"):
        refused(tmp_path / "model")

    assert (tmp_path / name / "mine").exists()


def test_of_two_saves_at_a_time_one_is_refused_and_the_other_is_whole(tmp_path: Path) -> None:
    refusals = list[str]()

    def pages_while_another_saves() -> list[tuple[I64, F32]]:
        with pytest.raises(ConfigError) as caught:
            save_model(tmp_path / "model")
        refusals.append(str(caught.value))
        return PAGES

    manifest = Manifest("job", "psrt test", "program text\n", [TABLE])
    save(tmp_path / "model", manifest, {"fc/w": WEIGHT}, {TABLE.name: pages_while_another_saves})

    assert "Another save is under way" in refusals[0]
    assert list(load(tmp_path / "model").dense) == ["fc/w"]
