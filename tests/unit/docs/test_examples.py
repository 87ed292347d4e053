"""Every example: its data can be made without any download, and its job learns from them here."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from psrt.cli import main
from psrt.config.load import load_job
from psrt.graph.verify import verify
from psrt.trainer.inputs import job as jobs

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"
STEPS = 60
"""Training stops there: enough to see the loss fall."""


def script(directory: Path, name: str, *arguments: str) -> None:
    command = [sys.executable, str(directory / name), *arguments]
    subprocess.run(command, check=True, timeout=60, stdout=subprocess.DEVNULL)


def make_data(directory: Path) -> None:
    script(directory, "make_data.py", str(directory / "data"))


def shoppers(directory: Path) -> None:
    script(directory, "make_data.py", str(directory / "data"), "32000")


def synthetic_clicks(directory: Path) -> None:
    sizes = "--rows", "8000", "--test-rows", "1000"
    assert main.run(["data", "synth-ctr", "--out", str(directory / "data"), *sizes]) == 0


def criteo_sample(directory: Path) -> None:
    source = str(directory / "sample.tsv")
    assert main.run(["data", "criteo", source, "--out", str(directory / "data")]) == 0


def libsvm_sample(directory: Path) -> None:
    sample = directory / "sample.svm"
    script(directory, "make_sample.py", str(sample))
    assert main.run(["data", "libsvm", str(sample), "--out", str(directory / "data")]) == 0


def digits_sample(directory: Path) -> None:
    script(directory, "make_sample.py", str(directory))
    names = (str(directory / f"{what}-idx{n}-ubyte") for what, n in (("images", 3), ("labels", 1)))
    assert main.run(["data", "mnist", *names, "--out", str(directory / "data")]) == 0


@dataclass(frozen=True)
class Example:
    """A job file, how its sample is made, and the loss of knowing nothing."""

    job: str
    sample: Callable[[Path], None]
    blind_loss: float


COIN = math.log(2)
ALL = [
    Example("adult/adult.toml", make_data, COIN),
    Example("criteo/criteo.toml", criteo_sample, 2 * COIN),  # 400 rows with nothing to learn
    Example("criteo/geo.toml", criteo_sample, 2 * COIN),
    Example("criteo/model_zoo.toml", criteo_sample, 512 * COIN),  # its loss is a sum over 256 rows
    Example("ctr_dnn/ctr_dnn.toml", synthetic_clicks, COIN),
    Example("deepfm/deepfm.toml", synthetic_clicks, COIN),
    Example("din/din.toml", shoppers, COIN),
    Example("fit_a_line/fit_a_line.toml", make_data, 10.0),
    Example("libsvm/libsvm.toml", libsvm_sample, COIN),
    Example("mnist/mlp.toml", digits_sample, math.log(10)),
    Example("mnist/mnist.toml", digits_sample, math.log(10)),
    Example("recommender/recommender.toml", make_data, 0.8),
    Example("word2vec/geo.toml", make_data, 6 * COIN),
    Example("word2vec/word2vec.toml", make_data, 6 * COIN),
]
NEEDS_A_FILE = {"fit_a_line/housing.toml"}


def copied(name: str, directory: Path) -> Path:
    """The folder of an example, and those its job refers to, without data made before."""
    for folder in {name.split("/")[0], "ctr_dnn"}:
        ignore = shutil.ignore_patterns("data", "__pycache__")
        shutil.copytree(EXAMPLES / folder, directory / folder, ignore=ignore)
    return directory / name


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines()


def shortened(job: Path) -> None:
    """Shorten a job to at most `STEPS` steps: one file, one epoch."""
    text = job.read_text()
    epochs = tomllib.loads(text)["data"]["epochs"]
    job.write_text(text.replace(f"epochs = {epochs}\n", "epochs = 1\n"))
    batch = tomllib.loads(text)["data"]["batch_size"]
    files = sorted((job.parent / "data").glob("train-*"))
    lines = files[0].read_text().splitlines(keepends=True)
    files[0].write_text("".join(lines[: STEPS * batch]))
    for path in files[1:]:
        path.unlink()


def test_every_job_file_is_tried_here() -> None:
    found = {str(path.relative_to(EXAMPLES)) for path in EXAMPLES.glob("*/*.toml")}

    assert found == {example.job for example in ALL} | NEEDS_A_FILE


@pytest.mark.parametrize("example", ALL, ids=lambda example: example.job)
def test_an_example_learns_from_its_sample(example: Example, tmp_path: Path) -> None:
    job = copied(example.job, tmp_path)
    example.sample(job.parent)
    shortened(job)
    report = tmp_path / "report.json"

    verify(jobs.load_job(load_job(str(job), environ={}).config).program)
    code = main.run(["trainer", "--local", "--report", str(report), str(job)])

    facts = json.loads(report.read_text())
    assert code == 0
    assert 0 < facts["steps"] <= STEPS
    assert facts["test_loss"] < example.blind_loss


def test_the_housing_table_is_split_and_scaled(tmp_path: Path) -> None:
    rows = [[i * (j + 1) + j for j in range(13)] + [20 + i] for i in range(50)]
    (tmp_path / "housing.data").write_text(
        "\n".join(" ".join(f"{value:>8}" for value in row) for row in rows)
    )

    out = tmp_path / "data"
    script(EXAMPLES / "fit_a_line", "make_data.py", str(out), str(tmp_path / "housing.data"))

    train = [line.split() for path in out.glob("train-*") for line in lines_of(path)]
    tests = (out / "test-0.txt").read_text().splitlines()
    assert (len(train), len(tests)) == (40, 10)
    for column in range(1, 14):
        values = [float(words[column]) for words in train]
        assert sum(values) == pytest.approx(0, abs=1e-3)
        assert sum(value * value for value in values) / 40 == pytest.approx(1, abs=1e-3)
    prices = sorted(float(line.split()[-1]) for line in [*tests, *map(" ".join, train)])
    assert prices == [20.0 + i for i in range(50)]


def test_adult_categories_unseen_in_training_have_an_id_of_their_own(tmp_path: Path) -> None:
    row = (
        "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, "
        "Male, 2174, 0, 40, Cuba, "
    )
    (tmp_path / "train").write_text(row + "<=50K\n" + row.replace("39", "52") + ">50K\n\n")
    (tmp_path / "test").write_text("|1x3 Cross validator\n" + row.replace("Cuba", "?") + ">50K.\n")

    files = str(tmp_path / "train"), str(tmp_path / "test")
    script(EXAMPLES / "adult", "make_data.py", str(tmp_path / "data"), *files)

    line = (tmp_path / "data" / "test-0.txt").read_text().split()
    assert line[:2] == ["1", "1"]  # the full stop of the test labels is no part of them
    assert line[8:18] == ["9", "1", "2", "3", "4", "5", "6", "7", "0", "9"]
    assert line[18:] == ["12", "1", "2", "3", "4", "5", "6", "7", "0", "9", "10", "0", "12"]
