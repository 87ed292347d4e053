"""`psrt data libsvm` and `psrt data mnist` as a user types them."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from psrt.cli import main

IMAGES = b"\0\0\x08\x03" + struct.pack(">III", 3, 1, 2) + bytes((0, 255, 51, 102, 153, 204))
LABELS = b"\0\0\x08\x01" + struct.pack(">I", 3) + bytes((4, 0, 9))


def write_idx(directory: Path) -> tuple[str, str]:
    (directory / "images").write_bytes(IMAGES)
    (directory / "labels").write_bytes(LABELS)
    return str(directory / "images"), str(directory / "labels")


def test_libsvm_says_what_it_wrote_and_how_a_job_reads_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.svm").write_text("1 1:2\n-1 3:4\n")
    (tmp_path / "b.svm").write_text("1 5:6\n")
    out = tmp_path / "out"

    tests = ("--test", str(tmp_path / "b.svm"))
    code = main.run(["data", "libsvm", str(tmp_path / "a.svm"), *tests, "--out", str(out)])

    said = capsys.readouterr().out
    assert code == 0
    assert "train: 2 rows, 50.0 % positives" in said
    assert "test: 1 rows, 100.0 % positives" in said
    assert "slots: label (1 float), ids (any number of ids), values (any number of floats)" in said
    assert f'train = ["{out}/train-*.txt"]' in said
    assert (out / "test-00000.txt").read_text() == "1 1 1 5 1 6\n"


def test_mnist_says_what_it_wrote_and_how_a_job_reads_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    images, labels = write_idx(tmp_path)
    out = tmp_path / "out"

    where = ("--out", str(out), "--files", "1", "--gzip")
    code = main.run(["data", "mnist", images, labels, "--test", images, labels, *where])

    said = capsys.readouterr().out
    assert code == 0
    assert "train: 3 rows, in" in said
    assert "slots: pixel (2 floats), label (1 id)" in said
    assert f'test = ["{out}/test-*.txt.gz"]' in said


@pytest.mark.parametrize("command", ["libsvm", "mnist"])
def test_data_made_before_is_replaced_only_when_asked(tmp_path: Path, command: str) -> None:
    (tmp_path / "a.svm").write_text("1 1:2\n")
    inputs = write_idx(tmp_path) if command == "mnist" else (str(tmp_path / "a.svm"),)
    arguments = ["data", command, *inputs, "--out", str(tmp_path / "out"), "--test-fraction", "0"]

    assert main.run(arguments) == 0
    assert main.run(arguments) != 0
    assert main.run([*arguments, "--replace"]) == 0


def test_a_bad_row_is_told_with_file_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.svm").write_text("1 1:2\n3 1:2\n")

    code = main.run(["data", "libsvm", str(tmp_path / "a.svm"), "--out", str(tmp_path / "out")])

    assert code != 0
    assert "a.svm, line 2, label: expected 1 or +1" in capsys.readouterr().err
