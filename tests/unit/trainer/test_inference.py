"""A model saved for prediction predicts as the program that was trained did."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import psrt
from psrt import layers
from psrt.core.errors import ConfigError, DataError, ErrorCode, ProgramError
from psrt.core.types import F32, I64
from psrt.trainer.models.model_dir import Manifest, Prediction
from psrt.trainer.models.saved_model import load
from tests.support.click_model import Trained, batch, train

FEEDS = ["x", "ids"]


@pytest.fixture(scope="module")
def trained() -> Trained:
    return train()


@pytest.fixture
def saved(trained: Trained, tmp_path: Path) -> Path:
    directory = tmp_path / "model"
    psrt.save_inference_model(
        directory, FEEDS, [trained.prediction], trained.program, trained.scope
    )
    return directory


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("padding_id", [None, 3])
def test_a_loaded_model_predicts_what_the_trained_program_does(
    tmp_path: Path, sparse: bool, padding_id: int | None
) -> None:
    trained = train(sparse, padding_id)
    feed = batch(20, seed=9)
    prediction = trained.model.prediction
    assert prediction is not None

    psrt.save_inference_model(tmp_path / "m", FEEDS, [prediction], trained.program, trained.scope)
    predictor = psrt.load_inference_model(tmp_path / "m")

    assert (predictor.feeds, predictor.fetches) == (FEEDS, [trained.prediction])
    np.testing.assert_array_equal(predictor.run(feed)[0], trained.predict(feed))
    np.testing.assert_array_equal(predictor.run(batch(3, 1))[0], trained.predict(batch(3, 1)))


def test_the_program_saved_has_no_loss_no_label_and_no_training(saved: Path) -> None:
    program = psrt.load_inference_model(saved).program

    assert [var.name for var in program.data_vars()] == FEEDS
    assert {op.role for op in program.ops} == {"forward"}
    assert program.trained() == []


def test_the_slots_of_a_line_are_those_of_the_whole_program(saved: Path) -> None:
    slots = psrt.load_inference_model(saved).slots

    assert [(slot.name, slot.dtype, slot.size) for slot in slots] == [
        ("click", "float", 1),
        ("x", "float", 3),
        ("ids", "uint64", 2),
    ]


def test_other_vars_of_the_saved_program_can_be_fetched(saved: Path, trained: Trained) -> None:
    feed = batch(4, seed=2)

    logits, again = psrt.load_inference_model(saved, ["fc_1.out", trained.prediction]).run(feed)

    np.testing.assert_allclose(again, 1 / (1 + np.exp(-np.asarray(logits))), rtol=1e-6)


def test_an_unknown_fetch_is_the_callers_mistake(saved: Path) -> None:
    with pytest.raises(ProgramError, match="no var fc_7 to fetch"):
        psrt.load_inference_model(saved, ["fc_7"])


def test_a_feed_that_is_missing_is_named_when_it_is_not_fed(saved: Path) -> None:
    with pytest.raises(DataError, match="does not feed ids"):
        psrt.load_inference_model(saved).run({"x": batch(2, 0)["x"]})


def test_saving_refuses_feeds_that_do_not_suffice(trained: Trained, tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="the data var ids, read by op embedding"):
        psrt.save_inference_model(
            tmp_path / "m", ["x"], [trained.prediction], trained.program, trained.scope
        )

    assert list(tmp_path.iterdir()) == []


def test_saving_does_not_replace_what_is_no_model(trained: Trained, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("three years of work")

    with pytest.raises(ConfigError, match="not a saved model"):
        psrt.save_inference_model(
            tmp_path, FEEDS, [trained.prediction], trained.program, trained.scope
        )


def test_state_that_counts_starts_from_zero(tmp_path: Path) -> None:
    with psrt.program() as program:
        score, label = layers.data("score"), layers.data("label")
        auc = layers.auc(score, label)
    scope = psrt.Scope()
    scope.init_parameters(program)

    psrt.save_inference_model(tmp_path / "m", ["score", "label"], [auc], program, scope)
    predictor = psrt.load_inference_model(tmp_path / "m")

    feed = {
        "score": np.array([[0.9], [0.1]], np.float32),
        "label": np.array([[1], [0]], np.float32),
    }
    assert float(np.asarray(predictor.run(feed)[0])) == 1.0


# --- distributed tables ---------------------------------------------------------------------------


def distributed() -> tuple[psrt.Program, str, psrt.Scope]:
    with psrt.program() as program:
        ids = layers.data("ids", shape=(1,), dtype="int64", ragged=True)
        initializer = psrt.initializer.Constant(0.5)
        table = psrt.Param("table", initializer=initializer)
        pooled = layers.slot_embeddings([ids], size=(10, 2), param=table)
    return program, pooled.name, psrt.Scope()


def pages() -> Iterator[tuple[I64, F32]]:
    """Two pages, ids not in order, one of them beyond the size of the table."""
    yield np.array([7, -2], np.int64), np.array([[7, 70], [-2, -20]], np.float32)
    yield np.array([10**12], np.int64), np.array([[1, 2]], np.float32)


def test_rows_of_a_distributed_table_come_from_pages_and_else_from_its_initializer(
    tmp_path: Path,
) -> None:
    program, out, scope = distributed()

    psrt.save_inference_model(
        tmp_path / "m", ["ids"], [out], program, scope, tables={"table": pages}
    )
    (pooled,) = psrt.load_inference_model(tmp_path / "m").run(
        {"ids": psrt.Ragged.of([[7], [7, -2, 10**12], [], [5]])}
    )

    np.testing.assert_array_equal(pooled, [[7, 70], [6, 52], [0, 0], [0.5, 0.5]])


def test_a_distributed_table_without_rows_is_refused_by_name(tmp_path: Path) -> None:
    program, out, scope = distributed()

    with pytest.raises(ProgramError, match="distributed table table are in no scope"):
        psrt.save_inference_model(tmp_path / "m", ["ids"], [out], program, scope)


def test_rows_stay_in_their_files_and_reading_changes_none(tmp_path: Path) -> None:
    program, out, scope = distributed()
    psrt.save_inference_model(
        tmp_path / "m", ["ids"], [out], program, scope, tables={"table": pages}
    )
    files = {path: path.read_bytes() for path in tmp_path.rglob("*.npy")}

    model = load(tmp_path / "m")
    rows = model.pull_rows({"table": np.array([7], np.int64)})["table"]
    rows += 1

    again = model.pull_rows({"table": np.array([7], np.int64)})["table"]
    np.testing.assert_array_equal(again, [[7, 70]])
    assert {path: path.read_bytes() for path in files} == files


# --- damage ---------------------------------------------------------------------------------------


def rewrite(directory: Path, **fields: object) -> None:
    path = directory / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def assert_unreadable(directory: Path, match: str) -> None:
    with pytest.raises(DataError, match=match) as caught:
        psrt.load_inference_model(directory)
    assert caught.value.code == ErrorCode.MODEL_UNREADABLE


def test_a_damaged_file_is_named(saved: Path) -> None:
    path = saved / "dense" / "fc_0.w_0.npy"
    path.write_bytes(path.read_bytes()[:-4] + b"\0\0\0\1")

    assert_unreadable(saved, r"fc_0\.w_0\.npy does not have the checksum")


def test_a_program_that_is_cut_short_is_told(saved: Path) -> None:
    program = json.loads((saved / "manifest.json").read_text())["program"]
    rewrite(saved, program=program[: len(program) // 2])

    assert_unreadable(saved, r"manifest\.json has no legal program: Line \d+")


def test_a_prediction_that_no_op_computes_is_told(saved: Path, trained: Trained) -> None:
    program = json.loads((saved / "manifest.json").read_text())["program"]
    rewrite(saved, program="".join(program.splitlines(keepends=True)[:-1]))

    assert_unreadable(saved, rf"contradicts itself: .* no op that computes {trained.prediction}")
    with pytest.raises(ProgramError, match="no op that computes"):
        psrt.load_inference_model(saved, [trained.prediction])


def test_a_manifest_nested_too_deep_is_told(saved: Path) -> None:
    (saved / "manifest.json").write_text("[" * 100_000)

    assert_unreadable(saved, r"manifest\.json is not JSON")


def test_a_prediction_that_the_program_does_not_have_is_told(saved: Path) -> None:
    rewrite(saved, prediction={"feeds": ["x"], "fetches": ["gone"]})

    assert_unreadable(saved, r"manifest\.json contradicts itself: .* no var gone")


def test_a_parameter_that_is_not_in_the_files_is_named(saved: Path) -> None:
    dense = json.loads((saved / "manifest.json").read_text())["dense"]
    rewrite(saved, dense={name: file for name, file in dense.items() if name != "fc_0.w_0"})

    assert_unreadable(saved, r"has no parameter fc_0\.w_0")


def test_a_manifest_without_a_prediction_loads_when_told_what_to_fetch(
    saved: Path, trained: Trained
) -> None:
    path = saved / "manifest.json"
    plain = json.loads(path.read_text())
    del plain["prediction"]
    path.write_text(json.dumps(plain))
    feed = batch(4, seed=3)

    with pytest.raises(ConfigError, match="does not say which var is its prediction"):
        psrt.load_inference_model(saved)
    predictor = psrt.load_inference_model(saved, [trained.prediction])

    np.testing.assert_array_equal(predictor.run(feed)[0], trained.predict(feed))
    assert [slot.name for slot in predictor.slots] == FEEDS


def test_the_manifest_keeps_what_is_said_about_prediction() -> None:
    said = Prediction(("x",), ("p",), "logit", "click")

    text = Manifest("job", "psrt", "", [], said).to_json()

    assert json.loads(text)["prediction"] == {
        "feeds": ["x"],
        "fetches": ["p"],
        "kind": "logit",
        "label": "click",
        "group": "",
        "weight": "",
        "slots": [],
        "format": "multislot",
        "options": {},
    }


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("bad", [-1, 50])
def test_an_id_outside_of_a_whole_table_is_refused(tmp_path: Path, sparse: bool, bad: int) -> None:
    trained = train(sparse)
    directory = tmp_path / "m"
    psrt.save_inference_model(
        directory, FEEDS, [trained.prediction], trained.program, trained.scope
    )
    feed = batch(3, seed=9)
    feed["ids"][1, 1] = bad

    with pytest.raises(ProgramError, match=f"Id {bad} is not a row of table .* rows 0 to 49"):
        psrt.load_inference_model(directory).run(feed)
