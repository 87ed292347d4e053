"""Ragged ids in ONNX files: elements and offsets, pooled as here, empty examples included."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import psrt
from psrt import layers
from psrt.cli import main
from psrt.core.tensors import Ragged
from psrt.graph.program import Var
from psrt.trainer.models.inference import load_inference_model, save_inference_model
from psrt.trainer.models.onnx_export import export_onnx

BATCHES: dict[str, list[list[int]]] = {
    "some empty": [[3, 7, 3], [], [1], [], [9, 9, 9, 2], []],
    "all empty": [[], []],
    "one": [[5]],
}


def ids(name: str) -> Var:
    return layers.data(name, (1,), "int64", ragged=True)


def model_of(build, directory: Path) -> Path:
    """The folder of a model that computes what `build()` returns; only even ids have rows."""
    with psrt.program(seed=3) as program:
        out = build()
    scope = psrt.Scope()
    scope.init_parameters(program)
    random, trained = np.random.default_rng(1), np.arange(0, 20, 2, dtype=np.int64)
    tables = {
        p.name: lambda width=p.shape[1]: iter(
            [(trained, random.normal(size=(len(trained), width)).astype(np.float32))]
        )
        for p in program.parameters.values()
        if p.distributed
    }
    feeds = [var.name for var in program.data_vars()]
    save_inference_model(directory / "model", feeds, [out], program, scope, tables=tables)
    return directory / "model"


def fed(feed: dict[str, Ragged | np.ndarray]) -> dict[str, np.ndarray]:
    """The inputs of a file: elements, and offsets, of each ragged feed."""
    found: dict[str, np.ndarray] = {}
    for name, values in feed.items():
        if isinstance(values, Ragged):
            found |= {name: values.values, f"{name}.offsets": values.offsets}
        else:
            found[name] = values
    return found


def assert_same(model: Path, feeds: list[dict[str, Ragged | np.ndarray]]) -> None:
    predictor = load_inference_model(model)
    export_onnx(predictor, model.with_suffix(".onnx"))
    session = onnxruntime.InferenceSession(str(model.with_suffix(".onnx")))
    for feed in feeds:
        (found,) = session.run(None, fed(feed))
        expected = np.asarray(predictor.run(feed)[0])
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("is_distributed", [True, False])
@pytest.mark.parametrize("pool", ["sum", "average", "sqrt", "max", "first", "last"])
def test_ragged_ids_are_pooled_as_here(pool: str, is_distributed: bool, tmp_path: Path) -> None:
    def build() -> Var:
        slots = [ids("a"), ids("b")]
        size = (50, 4)
        return layers.slot_embeddings(slots, size, pool=pool, is_distributed=is_distributed)

    model = model_of(build, tmp_path)

    assert_same(model, [{"a": Ragged.of(r), "b": Ragged.of(r[::-1])} for r in BATCHES.values()])


def test_ragged_ids_stand_beside_dense_ones(tmp_path: Path) -> None:
    def build() -> Var:
        slots = [ids("a"), layers.data("b", (2,), "int64")]
        pooled = layers.slot_embeddings(slots, (50, 4))
        return layers.fc(layers.concat([pooled, layers.data("x", (3,))], axis=1), 1)

    model = model_of(build, tmp_path)
    random = np.random.default_rng(2)
    feed = {
        "a": Ragged.of([[1, 2], [], [4]]),
        "b": np.array([[1, 2], [3, 4], [5, 5]]),
        "x": random.normal(size=(3, 3)).astype(np.float32),
    }

    assert_same(model, [feed])


def test_weighted_ragged_ids_are_added_up_as_here(tmp_path: Path) -> None:
    def build() -> Var:
        values = layers.data("values", (1,), ragged=True)
        return layers.weighted_embedding(ids("a"), values, (50, 3))

    model = model_of(build, tmp_path)
    rows = BATCHES["some empty"]
    weights = [[0.5 * at + 1 for at, _ in enumerate(row)] for row in rows]
    feed = {"a": Ragged.of(rows), "values": Ragged.of(weights, "float32")}

    predictor = load_inference_model(model)
    values = feed["values"]
    assert isinstance(values, Ragged)
    shape = predictor.program.vars["values"].shape
    if len(shape) == 2:
        feed["values"] = Ragged(values.values.reshape(-1, 1), values.offsets)
    assert_same(model, [feed])


def test_the_command_names_the_inputs_and_the_file_has_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = model_of(lambda: layers.slot_embeddings([ids("words")], (50, 4)), tmp_path)

    assert main.run(["export", str(model), str(tmp_path / "m.onnx")]) == 0

    assert "words, words.offsets → " in capsys.readouterr().err
    inputs = onnx.load(str(tmp_path / "m.onnx")).graph.input
    assert [each.name for each in inputs] == ["words", "words.offsets"]
