"""What every data set writer keeps: the same promises for `criteo` and `synth-ctr`.

Both run through the command line, as users do.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from psrt.cli.data import data
from psrt.core.errors import DataError
from psrt.data.criteo import slots
from psrt.data.files import expand, share
from psrt.data.queue import QueueReader

ROWS = 400


@pytest.fixture(params=["criteo", "criteo-buckets", "synth-ctr"])
def command(request, tmp_path) -> list[str]:
    if request.param == "synth-ctr":
        return ["synth-ctr", "--rows", str(ROWS * 3 // 4), "--test-rows", str(ROWS // 4)]
    table = tmp_path / "in.tsv.gz"
    table.write_bytes(gzip.compress("".join(criteo_row(i) for i in range(ROWS)).encode()))
    buckets = ["--bucket-ints"] if request.param == "criteo-buckets" else []
    return ["criteo", str(table), "--test-fraction", "0.25", *buckets]


def criteo_row(i: int) -> str:
    integers = [str(i * k) if (i + k) % 4 else "" for k in range(13)]
    categories = [f"{i * k % 97:08x}" if (i + k) % 9 else "" for k in range(26)]
    return "\t".join([str(i % 2), *integers, *categories]) + "\n"


def run(command: list[str], *options: str) -> str:
    result = CliRunner().invoke(data, [*command, *options], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def contents(directory: Path, pattern: str) -> dict[str, bytes]:
    paths = expand([pattern], directory)
    return {path.name: path.read_bytes() for path in paths}


def examples(paths: list[Path], command: list[str]) -> int:
    layout = slots(bucket_integers="--bucket-ints" in command)
    with QueueReader(paths, layout, 32, threads=2) as reader:
        return sum(len(batch["click"]) for batch in reader)


def test_every_row_is_in_one_file(command, tmp_path):
    run(command, "--out", str(tmp_path / "out"), "--files", "3")

    assert examples(expand(["*.txt"], tmp_path / "out"), command) == ROWS


def test_every_trainer_gets_the_same_number_of_rows_but_one(command, tmp_path):
    run(command, "--out", str(tmp_path / "out"), "--files", "4")
    train = expand(["train-*"], tmp_path / "out")

    counts = [examples(share(train, trainer_id, 4), command) for trainer_id in range(4)]

    assert max(counts) - min(counts) <= 1


def test_gzip_files_hold_the_same_text(command, tmp_path):
    run(command, "--out", str(tmp_path / "plain"))
    run(command, "--out", str(tmp_path / "zipped"), "--gzip")

    plain = contents(tmp_path / "plain", "t*.txt")
    zipped = contents(tmp_path / "zipped", "t*.txt.gz")
    assert list(plain.values()) == [gzip.decompress(text) for text in zipped.values()]
    assert [f"{name}.gz" for name in plain] == list(zipped)


def test_a_second_run_writes_the_same_bytes(command, tmp_path):
    run(command, "--out", str(tmp_path / "out"))
    first = contents(tmp_path / "out", "*")

    run(command, "--out", str(tmp_path / "out"), "--replace")

    assert contents(tmp_path / "out", "*") == first


def test_old_files_are_not_mixed_with_new_ones(command, tmp_path):
    run(command, "--out", str(tmp_path / "out"), "--files", "3")

    with pytest.raises(DataError, match=r"already holds 6 data files \(test-00000\.txt"):
        run(command, "--out", str(tmp_path / "out"), "--files", "2")
    run(command, "--out", str(tmp_path / "out"), "--files", "2", "--replace")

    assert len(expand(["*.txt"], tmp_path / "out")) == 4


def test_the_command_tells_what_it_wrote_and_what_comes_next(command, tmp_path):
    output = run(command, "--out", str(tmp_path / "out"))

    assert "train-00000.txt … train-00001.txt" in output
    assert f'train = ["{tmp_path}/out/train-*.txt"]' in output
    assert "psrt launch" in output


def test_printed_globs_find_the_files(command, tmp_path):
    output = run(command, "--out", str(tmp_path / "out"), "--gzip")

    patterns = [line.split('"')[1] for line in output.splitlines() if "*" in line]
    assert len(expand(patterns)) == 4


def test_clicks_are_zero_or_one_and_dense_values_finite(command, tmp_path):
    run(command, "--out", str(tmp_path / "out"))
    layout = slots(bucket_integers="--bucket-ints" in command)

    with QueueReader(expand(["train-*"], tmp_path / "out"), layout, ROWS) as reader:
        [batch] = reader

    assert set(np.unique(batch["click"])) == {0, 1}
    assert np.isfinite(batch["dense_input"]).all()
