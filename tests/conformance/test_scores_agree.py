"""A raw row has one score: by `psrt predict`, by `Predictor` and by onnxruntime.

Rows have the shapes of three public tables. Files to predict have no labels, and ids, texts and
gaps that no training file has.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

import psrt
from psrt.cli import main
from psrt.data.convert import avazu
from psrt.trainer.models import export_onnx

HEAD = """
import psrt
from psrt import layers

def model(rows, floats, label, *, logit=None):
    layer = layers.fc(layers.concat([*rows, *floats], axis=1), 8, act="tanh")
    logit = layers.fc(layer, 1) if logit is None else layers.fc(layer, 1) + logit
    loss = layers.mean(layers.sigmoid_cross_entropy_with_logits(logit, label))
    optimizer = psrt.optimizer.Adagrad(0.1)
    return psrt.Model(loss, layers.sigmoid(logit), label, optimizer)
"""
CRITEO = """
def build():
    label = layers.data("click", (1,))
    dense = layers.data("dense_input", (13,))
    ids = [layers.data(f"C{i}", (1,), "int64") for i in range(1, 27)]
    return model([layers.slot_embeddings(ids, (1000, 4))], [dense], label)
"""
AVAZU = """
def build():
    label = layers.data("click", (1,))
    names = {names}
    ids = [layers.data(name, (1,), "int64") for name in names]
    return model([layers.slot_embeddings(ids, (1000, 4))], [], label)
"""
ADULT = """
def build():
    label = layers.data("income", (1,))
    numbers = layers.data("numbers", (2,))
    deep = layers.data("deep", (2,), "int64")
    wide = layers.data("wide", (1,), "int64")
    rows = layers.embedding(deep, (500, 4), is_sparse=True)
    linear = layers.slot_embeddings([wide], (64, 1), is_distributed=False)
    return model([layers.flatten(rows)], [numbers], label, logit=linear)
"""
ADULT_DATA = """
[data.options]
names = ["age", "workclass", "hours", "occupation", "income"]

[data.columns]
income = { column = "income", values = { "<=50K" = 0, ">50K" = 1 } }
numbers = { columns = ["age", "hours"], scale = "log", missing = 0 }
deep = { columns = ["workclass", "occupation"], kind = "text", buckets = 500 }
wide = { column = "age", kind = "bucket", salt = 9, buckets = 64 }
"""
JOB = """
[job]
name = "{name}"
program = "program.py"
[data]
format = "{format}"
train = ["train.*"]
batch_size = 50
"""
Rows = list[list[str]]


@dataclass
class Shape:
    """A table: its job, and rows by column."""

    name: str
    format: str
    program: str
    data: str
    columns: Sequence[str]
    label: str
    row: Callable[[random.Random], list[str]]
    delimiter: str = ","
    has_header: bool = False

    def write(self, path: Path, rows: Rows, leave_out: str = "") -> None:
        """Write a file, perhaps without the column `leave_out`."""
        names = [name for name in self.columns if name != leave_out]
        kept = [self.columns.index(name) for name in names]
        with path.open("w", newline="") as file:
            table = csv.writer(file, delimiter=self.delimiter, lineterminator="\n")
            table.writerows([names] * self.has_header + [[row[at] for at in kept] for row in rows])


def word(draw: random.Random, kinds: int) -> str:
    return f"{draw.randrange(kinds):08x}"


def criteo_row(draw: random.Random) -> list[str]:
    integers = [draw.choice(["", str(draw.randrange(-2, 900))]) for _ in range(13)]
    return [str(draw.randrange(2)), *integers, *(word(draw, 20) for _ in range(25)), ""]


def avazu_row(draw: random.Random) -> list[str]:
    hashed = [word(draw, 20) for _ in avazu.HASHED]
    return [str(draw.randrange(10**9)), str(draw.randrange(2)), "14102123", *hashed]


def adult_row(draw: random.Random) -> list[str]:
    age, hours = str(draw.randrange(17, 80)), draw.choice(["", "40", "13"])
    return [age, word(draw, 9), hours, f"müde {word(draw, 9)}", draw.choice(["<=50K", ">50K"])]


AVAZU_COLUMNS = "[data.columns]\n" + "".join(
    f'{name} = {{ column = "{name}", kind = "text", salt = {avazu.COLUMNS.index(name)} }}\n'
    for name in avazu.HASHED
)
INTEGERS, CATEGORIES = [f"I{i}" for i in range(1, 14)], [f"C{i}" for i in range(1, 27)]
SHAPES = [
    Shape("criteo", "criteo", CRITEO, "", ["label", *INTEGERS, *CATEGORIES], "label", criteo_row,
          delimiter="\t"),
    Shape("avazu", "csv", AVAZU.format(names=avazu.HASHED), AVAZU_COLUMNS, avazu.COLUMNS, "click",
          avazu_row, has_header=True),
    Shape("adult", "csv", ADULT, ADULT_DATA, ["age", "workclass", "hours", "occupation", "income"],
          "income", adult_row),
]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_raw_row_has_one_score(shape: Shape, tmp_path: Path) -> None:
    draw = random.Random(3)
    job, model, test = tmp_path / "job.toml", tmp_path / "model", tmp_path / "test.raw"
    job.write_text(JOB.format(name=shape.name, format=shape.format) + shape.data)
    (tmp_path / "program.py").write_text(HEAD + shape.program)
    shape.write(tmp_path / "train.raw", [shape.row(draw) for _ in range(300)])
    rows = [shape.row(draw) for _ in range(40)]
    rows[0] = ["never seen" if cell == rows[0][-2] else cell for cell in rows[0]]
    assert main.run(["trainer", "--local", "--save", str(model), str(job)]) == 0

    predictor = psrt.load_inference_model(model)
    by_command = commanded(shape, model, test, rows, predictor.feeds)
    raw = {name: [row[at] or None for row in rows] for at, name in enumerate(shape.columns)}
    feed = predictor.features(raw)
    by_predictor = np.ravel(predictor.run(feed)[0])
    export_onnx(predictor, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    by_onnx = np.ravel(session.run(None, feed)[0])

    assert len(set(by_command)) > 30
    assert np.abs(by_command - by_predictor).max() < 1e-6
    assert np.abs(by_onnx - by_predictor).max() < 1e-6


def commanded(
    shape: Shape, model: Path, test: Path, rows: Rows, feeds: Sequence[str]
) -> np.ndarray[Any, Any]:
    """Scores of rows without labels by `psrt predict`."""
    is_named = shape.has_header or shape.format == "criteo"  # otherwise columns keep their places
    shape.write(test, rows, leave_out=shape.label if is_named else "")
    slots = ["--slots", ",".join(feeds)] if shape.format == "criteo" else []
    scores = test.with_suffix(".txt")
    assert main.run(["predict", str(model), "--out", str(scores), *slots, str(test)]) == 0
    return np.loadtxt(scores)


@pytest.mark.parametrize("shape", SHAPES[:2], ids=lambda shape: shape.name)
def test_converted_files_have_the_ids_of_raw_rows(shape: Shape, tmp_path: Path) -> None:
    draw, out = random.Random(4), tmp_path / "out"
    rows = [shape.row(draw) for _ in range(20)]
    shape.write(tmp_path / "raw", rows)
    flags = "--files", "1", "--test-fraction", "0", "--out", str(out)

    assert main.run(["data", shape.name, str(tmp_path / "raw"), *flags]) == 0

    words = [line.split() for line in (out / "train-00000.txt").read_text().splitlines()]
    first = shape.columns.index("C1")
    column = [row[first] for row in rows]
    word, salt = {"avazu": (5, first), "criteo": (17, 1)}[shape.name]
    assert [int(line[word]) for line in words] == psrt.hash_ids(column, salt=salt).tolist()
