"""Files of PaddlePaddle 2.6.2 (tests/golden/paddle_model.py) read, and files written for it."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt.core.errors import DataError
from psrt.core.tensors import Ragged
from psrt.fluid.formats.records import FileOp, FileVar, serialize
from tests.golden import paddle_model

GOLDEN = Path(paddle_model.__file__).parent / "paddle"
layers = fluid.layers


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """PaddlePaddle's model as it wrote it."""
    packed = (GOLDEN / "model.pdmodel.gz").read_bytes()
    (tmp_path / "model.pdmodel").write_bytes(gzip.decompress(packed))
    shutil.copy(GOLDEN / "model.pdiparams", tmp_path)
    return tmp_path / "model"


def started() -> fluid.Executor:
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    return exe


def test_a_model_of_paddle_predicts_what_it_did_there(model: Path) -> None:
    exe = fluid.Executor()

    program, feeds, fetches = fluid.io.load_inference_model(str(model), exe)
    found = exe.run(program, feed=paddle_model.batch(), fetch_list=fetches)

    assert feeds == ["ids", "dense", "image"]
    expected = json.loads((GOLDEN / "predictions.json").read_text())
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-5)


def test_values_that_paddle_saved_continue_here() -> None:
    x = layers.data("x", [13])
    layers.fc(x, 5)  # fc_0 of the golden network

    fluid.load(fluid.default_main_program(), str(GOLDEN / "state"))

    weights = np.array(fluid.global_scope().find_var("fc_0.w_0").get_tensor())
    assert weights.shape == (13, 5)
    assert weights.std() > 0.1


def test_a_file_is_byte_for_byte_that_of_paddle(model: Path) -> None:
    exe = fluid.Executor()
    program, feeds, fetches = fluid.io.load_inference_model(str(model), exe)
    there = {"model_filename": "model.pdmodel", "params_filename": "model.pdiparams"}

    fluid.io.save_inference_model(str(model), feeds, fetches, exe, program, **there)

    assert (model / "model.pdiparams").read_bytes() == (GOLDEN / "model.pdiparams").read_bytes()


def images() -> tuple[dict[str, Any], list[fluid.Variable]]:
    image = layers.data("image", [2, 8, 8])
    seen = layers.conv2d(image, 4, 3, stride=2, padding=1, act="relu")
    seen = layers.pool2d(layers.conv2d(seen, 4, 2, padding="SAME"), 2, "max", 1, [0, 1, 1, 0])
    seen = layers.dropout(layers.batch_norm(seen, act="sigmoid"), 0.4)
    flat = layers.flatten(layers.pool2d(seen, 2, "avg", 2))
    parts = layers.split(layers.layer_norm(flat), 2, dim=1)
    both = layers.elementwise_max(layers.tanh(parts[0]), parts[1] * 2.0 - 1.0)
    turned = layers.transpose(layers.reshape(both, [-1, 4, 2]), [0, 2, 1])
    fed = {"image": np.random.default_rng(1).normal(size=(3, 2, 8, 8)).astype("f4")}
    return fed, [layers.reduce_mean(turned, dim=1), layers.fc([both, flat], 3, act="softmax")]


def words() -> tuple[dict[str, Any], list[fluid.Variable]]:
    listed = layers.data("words", [1], dtype="int64", lod_level=1)
    ids = layers.data("ids", [2], dtype="int64")
    rows = layers.embedding(listed, [9, 4], param_attr="table/rows")
    pooled = layers.sequence_pool(layers.fc(rows, 4, act="tanh"), "max")
    two = fluid.embedding(ids, [9, 4], param_attr="table/rows")
    added = layers.reduce_sum(two, dim=1)
    fed = {"words": Ragged.of([[1, 2], [3], [8, 8, 0]]), "ids": np.array([[1, 2], [3, 4], [5, 6]])}
    joined = layers.concat([pooled, added, layers.cos_sim(pooled, added)], axis=1)
    return fed, [layers.gelu(joined), layers.mean(layers.square_error_cost(pooled, added))]


@pytest.mark.parametrize("build", [images, words])
@pytest.mark.parametrize("combined", [None, "values"])
def test_a_model_that_is_written_for_paddle_is_what_it_was(
    tmp_path: Path, build: Any, combined: str | None
) -> None:
    feed, outs = build()
    exe = started()
    test = fluid.default_main_program().clone(for_test=True)
    expected = exe.run(test, feed=feed, fetch_list=outs)
    files = {"params_filename": combined}
    fluid.io.save_inference_model(str(tmp_path / "m"), list(feed), outs, exe, **files)
    (tmp_path / "m" / "manifest.json").unlink()  # psrt's own form is gone

    with fluid.scope_guard(fluid.Scope()):
        program, feeds, fetches = fluid.io.load_inference_model(str(tmp_path / "m"), exe, **files)
        found = exe.run(program, feed=feed, fetch_list=fetches)

    assert feeds == list(feed)
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_files_that_are_damaged_or_of_other_programs_are_refused(model: Path) -> None:
    exe, params = fluid.Executor(), model.with_suffix(".pdiparams")
    whole, program = params.read_bytes(), model.with_suffix(".pdmodel")
    for damaged, what in [
        (whole[:-3], "cut off"),
        (b"\1" + whole[1:], "no file of saved vars"),
        (whole + whole[:50], "cut off"),
        (whole[: len(whole) // 2], "cut off"),
    ]:
        params.write_bytes(damaged)
        with pytest.raises(DataError, match=what):
            fluid.io.load_inference_model(str(model), exe)
    params.write_bytes(b"")
    with pytest.raises(DataError, match="has 0 vars, where 13 were"):
        fluid.io.load_inference_model(str(model), exe)
    program.write_bytes(b"psrt-program 1")
    with pytest.raises(DataError, match="no program that was saved whole: Line 1"):
        fluid.io.load_inference_model(str(model), exe)
    program.write_bytes(b"quux")
    with pytest.raises(DataError, match="no program of Fluid"):
        fluid.io.load_inference_model(str(model), exe)
    program.write_bytes(serialize([FileVar("x", (-1, 2))], [FileOp("roi_pool", {}, {})]))
    with pytest.raises(DataError, match="an op roi_pool, which psrt does not read"):
        fluid.io.load_inference_model(str(model), exe)


def test_a_name_of_a_file_stays_in_its_directory(tmp_path: Path) -> None:
    layers.create_parameter([2], name="../out")
    exe = started()

    with pytest.raises(DataError, match="no file in"):
        fluid.io.save_params(exe, str(tmp_path / "d"))
    assert list(tmp_path.rglob("*")) == [tmp_path / "d"]


def test_a_model_is_kept_in_memory(tmp_path: Path) -> None:
    feed, outs = words()
    exe, main = started(), fluid.default_main_program()
    expected = exe.run(main, feed=feed, fetch_list=outs)
    compiled = fluid.CompiledProgram(main).with_data_parallel(places=fluid.cpu_places(2))
    fluid.io.save_inference_model(
        str(tmp_path), list(feed), outs, exe, compiled, "program", "values"
    )
    values = fluid.io.save_persistables(exe, None, compiled)
    model = (tmp_path / "program").read_bytes()

    with fluid.scope_guard(fluid.Scope()):
        program, feeds, fetches = fluid.io.load_inference_model(None, exe, model, values)
        found = exe.run(program, feed=feed, fetch_list=fetches)

    assert feeds == list(feed)
    assert values == (tmp_path / "values").read_bytes()
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    with pytest.raises(ValueError, match="no bytes of a program"):
        fluid.io.load_inference_model(None, exe, model, None)
    with pytest.raises(DataError, match="0 vars are in memory"):
        fluid.io.load_inference_model(None, exe, model, b"")
