"""`psrt predict` on a model saved in this process: what it reads, writes and refuses."""

from __future__ import annotations

import errno
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import psrt
from psrt.cli import main
from psrt.core.tensors import Ragged
from psrt.kernels import jit
from psrt.trainer.models.model_dir import Prediction
from psrt.trainer.models.prediction_text import json_lines, plain_lines
from tests.support.click_model import SLOTS, Trained, batch, lines_of, train

ROWS = 7


@pytest.fixture(autouse=True, scope="module")
def kernels_are_compiled() -> None:
    """Processes started here share the cache; none must wait for a compiler."""
    jit.warm_up()


@pytest.fixture(scope="module")
def trained() -> Trained:
    return train()


@pytest.fixture(scope="module")
def model(trained: Trained, tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("saved") / "model"
    program, scope = trained.program, trained.scope
    psrt.save_inference_model(directory, ["x", "ids"], [trained.prediction], program, scope)
    return str(directory)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "test-0"
    path.write_text(lines_of(batch(ROWS, seed=1), SLOTS))
    return path


@pytest.fixture
def expected(trained: Trained) -> np.ndarray:
    return trained.predict(batch(ROWS, seed=1)).reshape(-1)


def numbers(text: str) -> np.ndarray:
    """float32, exactly as written."""
    return np.array([line.split() for line in text.splitlines()], np.float32).reshape(-1)


# --- what it writes -------------------------------------------------------------------------------


@pytest.mark.parametrize("size", ["1", "3", "1024"])
def test_a_line_an_example_in_order_whatever_the_batch_size(
    model: str, data: Path, expected: np.ndarray, size: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main.run(["predict", "--batch-size", size, model, str(data)])

    assert code == 0
    written = numbers(capsys.readouterr().out)
    np.testing.assert_allclose(written, expected, rtol=1e-6)


def test_several_files_follow_each_other(
    model: str, data: Path, expected: np.ndarray, capsys: pytest.CaptureFixture[str]
) -> None:
    other = data.with_name("other.gz")
    other.write_bytes(gzip.compress(lines_of(batch(2, seed=5), SLOTS).encode()))

    main.run(["predict", model, str(data), str(other), str(data)])

    written = numbers(capsys.readouterr().out)
    assert len(written) == 2 * ROWS + 2
    np.testing.assert_allclose(written[:ROWS], expected, rtol=1e-6)
    np.testing.assert_allclose(written[-ROWS:], expected, rtol=1e-6)


def test_jsonl_has_an_object_a_line_with_the_vars_that_were_asked_for(
    model: str, data: Path, trained: Trained, capsys: pytest.CaptureFixture[str]
) -> None:
    fetch = f"{trained.prediction},fc_0.out"

    main.run(["predict", "--format", "jsonl", "--fetch", fetch, model, str(data)])

    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == ROWS
    assert all(set(row) == {trained.prediction, "fc_0.out"} for row in rows)
    assert all(len(row["fc_0.out"]) == 8 for row in rows)


def test_out_gets_its_name_when_all_is_done(
    model: str, data: Path, expected: np.ndarray, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "scores"
    out.write_text("earlier\n")

    code = main.run(["predict", "--out", str(out), model, str(data)])

    assert code == 0
    np.testing.assert_allclose(numbers(out.read_text()), expected, rtol=1e-6)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scores", "test-0"]
    said = capsys.readouterr()
    assert said.out == ""
    assert f"wrote {out}: {ROWS} examples" in said.err


def test_an_out_of_a_dash_is_the_standard_output(
    model: str,
    data: Path,
    expected: np.ndarray,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)

    code = main.run(["predict", "--out", "-", model, str(data)])

    assert code == 0
    np.testing.assert_allclose(numbers(capsys.readouterr().out), expected, rtol=1e-6)
    assert [path.name for path in tmp_path.iterdir()] == ["test-0"]


def test_a_run_that_fails_leaves_an_earlier_out_as_it_was(
    model: str, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "scores"
    out.write_text("earlier\n")
    data.write_text(data.read_text() + "no numbers\n")

    code = main.run(["predict", "--batch-size", "2", "--out", str(out), model, str(data)])

    assert code == 20
    assert out.read_text() == "earlier\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scores", "test-0"]


# --- what it reads --------------------------------------------------------------------------------


def test_slots_name_the_fields_of_files_without_labels(
    model: str, data: Path, expected: np.ndarray, capsys: pytest.CaptureFixture[str]
) -> None:
    data.write_text(lines_of(batch(ROWS, seed=1), ["ids", "x"]))

    code = main.run(["predict", "--slots", "ids,x", model, str(data)])

    assert code == 0
    np.testing.assert_allclose(numbers(capsys.readouterr().out), expected, rtol=1e-6)


JOB = """
[job]
name = "clicks"
program = "program.py"
[data]
format = "csv"
[data.columns]
click = "clicked"
ids = { column = "tags", separator = "|" }
x = ["x0", "x1", "x2"]
"""


def test_a_job_tells_the_format_of_files_without_labels(
    model: str, tmp_path: Path, expected: np.ndarray, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "job.toml").write_text(JOB)
    (tmp_path / "program.py").touch()  # a prediction does not run it
    feed = batch(ROWS, seed=1)
    rows = zip(feed["ids"].tolist(), feed["x"].tolist(), strict=True)
    lines = [",".join(["|".join(map(str, ids)), *map(repr, x)]) for ids, x in rows]
    (tmp_path / "new.csv").write_text("\n".join(["tags,x0,x1,x2", *lines]))
    arguments = ["--job", str(tmp_path / "job.toml"), "--slots", "x,ids"]

    code = main.run(["predict", *arguments, model, str(tmp_path / "new.csv")])

    said = capsys.readouterr()
    assert code == 0, said.err
    np.testing.assert_allclose(numbers(said.out), expected, rtol=1e-6)


def psrt_process(arguments: list[str], given: bytes) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "psrt", *arguments]
    return subprocess.run(command, input=given, capture_output=True, timeout=120, check=False)


@pytest.mark.parametrize("zipped", [False, True])
def test_a_dash_is_the_standard_input(
    model: str, data: Path, expected: np.ndarray, zipped: bool
) -> None:
    text = data.read_bytes()

    done = psrt_process(["predict", model, "-"], gzip.compress(text) if zipped else text)

    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(numbers(done.stdout.decode()), expected, rtol=1e-6)


def test_a_malformed_line_of_the_standard_input_is_named(model: str) -> None:
    done = psrt_process(["predict", model, "-"], b"1 0 3 1 2 3 2 7 8\n1 0 3 1 2 3 2 7 x\n")

    assert done.returncode == 20
    assert b"<stdin>, line 2, column 17, slot 'ids'" in done.stderr


def test_a_reader_that_leaves_ends_it_quietly(model: str, data: Path) -> None:
    data.write_text(data.read_text() * 20_000)
    command = f"{sys.executable} -m psrt predict {model} {data} | head -2"

    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=120, check=False
    )

    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2
    assert "Broken" not in done.stderr
    assert "error" not in done.stderr


# --- what it refuses ------------------------------------------------------------------------------


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = main.run(["predict", *arguments])
    return code, capsys.readouterr().err


def test_a_malformed_line_is_named_with_file_and_slot(
    model: str, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data.write_text(data.read_text() + "1 0 3 1 2 3 2 7\n")

    code, errors = refused([model, str(data)], capsys)

    assert code == 20
    assert f"{data}, line {ROWS + 1}, column 16, slot 'ids'" in errors


def test_an_unknown_slot_is_named_with_its_nearest_neighbour(
    model: str, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, errors = refused(["--slots", "x,idz", model, str(data)], capsys)

    assert code == 2
    assert "--slots names idz, which is no slot of the model." in errors
    assert "Did you mean ids?" in errors


def test_a_slot_that_the_model_needs_is_missed(
    model: str, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, errors = refused(["--slots", "click,x", model, str(data)], capsys)

    assert code == 2
    assert "--slots leaves out ids, which the model needs." in errors


def test_a_missing_file_is_named(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, errors = refused([model, "nowhere-*"], capsys)

    assert code == 21
    assert "data file nowhere-* matches no file." in errors


def test_a_directory_that_is_no_model_is_named(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, errors = refused([str(tmp_path), str(data)], capsys)

    assert code == 72
    assert "manifest.json cannot be opened" in errors


@pytest.mark.parametrize(
    ("out", "says"),
    [
        (".", "exists and is not a file"),
        ("none/scores", "none is not a directory"),
        ("n" * 300, "cannot be written (File name too long)"),
        ("n" * 253, "n.tmp cannot be written (File name too long)"),
        ("/proc/scores", "/proc/scores.tmp cannot be written (No such file or directory)"),
    ],
)
def test_an_out_that_cannot_be_written_is_refused_before_any_work(
    model: str, data: Path, tmp_path: Path, out: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, errors = refused(["--out", str(tmp_path / out), model, str(data)], capsys)

    assert code == 2
    assert says in errors


@pytest.mark.parametrize("out", ["test-0", "alias", "unfinished", "job.toml", "manifest.json"])
def test_an_out_that_is_read_is_refused_and_stays_as_it_is(
    model: str, data: Path, tmp_path: Path, out: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "job.toml").write_text(JOB)
    (tmp_path / "program.py").touch()
    (tmp_path / "alias").symlink_to(data)
    (tmp_path / "unfinished.tmp").symlink_to(data)
    manifest = Path(model) / "manifest.json"
    target = manifest if out == manifest.name else tmp_path / out
    before = {path: path.read_bytes() for path in (data, manifest)}
    job = ["--job", str(tmp_path / "job.toml")]

    code, errors = refused([*job, "--out", str(target), model, str(data)], capsys)

    assert code == 2
    assert "would be overwritten, but is read" in errors
    assert {path: path.read_bytes() for path in before} == before
    assert (tmp_path / "unfinished.tmp").is_symlink()


def test_a_directory_where_the_unfinished_file_would_be_is_named(
    model: str, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "scores.tmp").mkdir()

    code, errors = refused(["--out", str(tmp_path / "scores"), model, str(data)], capsys)

    assert code == 2
    assert "scores.tmp cannot be written (Is a directory)" in errors


def test_a_disk_that_gets_full_leaves_an_earlier_out_as_it_was(
    model: str,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "scores"
    out.write_text("earlier\n")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)

    code, errors = refused(["--out", str(out), model, str(data)], capsys)

    assert code == 2
    assert f"{out} cannot be written (No space left on device)" in errors
    assert out.read_text() == "earlier\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scores", "test-0"]


def test_a_standard_output_that_is_full_or_closed_is_told(
    model: str, data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        code, errors = refused([model, str(data)], capsys)
    assert code == 2
    assert "the standard output cannot be written (No space left on device)" in errors

    monkeypatch.setattr(sys, "stdout", None)
    code, errors = refused([model, str(data)], capsys)
    assert code == 2
    assert "the standard output is closed" in errors


def test_a_standard_input_that_is_closed_is_told(
    model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", None)

    code, errors = refused([model, "-"], capsys)

    assert code == 21
    assert "the standard input is closed" in errors


def test_a_var_without_a_value_by_example_is_refused(
    trained: Trained, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "model"
    loss = trained.model.loss
    psrt.save_inference_model(directory, SLOTS, [loss], trained.program, trained.scope)

    code, errors = refused([str(directory), str(data)], capsys)

    assert code == 2
    assert f"{loss.name} has shape (): one value for a whole batch" in errors


# --- logits ---------------------------------------------------------------------------------------


def save_logits(trained: Trained, directory: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Save a model as a trainer does if its Model has prediction_is="logit"."""
    from psrt.trainer.models import inference

    def said(feeds: tuple[str, ...], fetches: tuple[str, ...], **others: object) -> Prediction:
        return Prediction(feeds, fetches, kind="logit", **others)  # type: ignore[arg-type]

    monkeypatch.setattr(inference, "Prediction", said)
    program, scope = trained.program, trained.scope
    psrt.save_inference_model(directory, ["x", "ids"], ["fc_1.out"], program, scope)
    return str(directory)


def test_logits_become_probabilities_unless_asked_for(
    trained: Trained,
    data: Path,
    expected: np.ndarray,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    directory = save_logits(trained, tmp_path / "logits", monkeypatch)

    main.run(["predict", directory, str(data)])
    probabilities = numbers(capsys.readouterr().out)
    main.run(["predict", "--logits", directory, str(data)])
    logits = numbers(capsys.readouterr().out)

    np.testing.assert_allclose(probabilities, expected, rtol=1e-5)
    np.testing.assert_allclose(logits, np.log(expected / (1 - expected)), rtol=1e-3)


# --- lines ----------------------------------------------------------------------------------------

VALUES = [
    np.array([[0.1], [np.nan]], np.float32),
    np.array([[1, 2], [3, -4]], np.int64),
    Ragged.of([[0.5], []], "float32"),
]


def test_plain_lines_have_tabs_between_vars_and_blanks_within() -> None:
    assert list(plain_lines("abc", VALUES)) == ["0.1\t1 2\t0.5\n", "nan\t3 -4\t\n"]


def test_json_lines_have_lists_where_an_example_has_several_values() -> None:
    assert list(json_lines("abc", VALUES)) == [
        '{"a": 0.1, "b": [1, 2], "c": [0.5]}\n',
        '{"a": null, "b": [3, -4], "c": []}\n',
    ]


def test_numbers_read_back_as_the_same_float32() -> None:
    values = np.random.default_rng(0).normal(size=1000).astype(np.float32) * np.float32(1e-5)

    text = "".join(plain_lines("a", [values.reshape(-1, 1)]))

    np.testing.assert_array_equal(numbers(text), values)
