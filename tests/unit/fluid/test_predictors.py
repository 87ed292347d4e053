"""Predictors by the names of Fluid's inference library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt.core.errors import ConfigError, DataError

core = fluid.core


@pytest.fixture
def saved(tmp_path: Path) -> tuple[str, dict[str, Any], Any]:
    """The directory of a model, a feed of two sequences and dense rows, and its prediction."""
    words = fluid.layers.data("words", [1], dtype="int64", lod_level=1)
    dense = fluid.layers.data("dense", [3])
    pooled = fluid.layers.sequence_pool(fluid.layers.embedding(words, [20, 4]), "sum")
    scores = fluid.layers.fc(fluid.layers.concat([pooled, dense], axis=1), 2, act="softmax")
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    feed = {
        "words": fluid.create_lod_tensor(np.array([[3], [4], [9]]), [[1, 2]], fluid.CPUPlace()),
        "dense": np.ones((2, 3), "float32"),
    }
    directory = str(tmp_path / "model")
    fluid.io.save_inference_model(directory, ["words", "dense"], [scores], exe)
    return directory, feed, exe.run(feed=feed, fetch_list=[scores])[0]


def tensors(feed: dict[str, Any]) -> list[Any]:
    words = core.PaddleTensor()
    words.lod, words.shape = feed["words"].lod(), feed["words"].shape()
    words.data = core.PaddleBuf(np.array(feed["words"]))
    words.dtype = core.PaddleDType.INT64
    return [words, core.PaddleTensor(feed["dense"])]


def test_a_predictor_gives_what_the_program_gives(saved: Any) -> None:
    directory, feed, expected = saved
    config = core.NativeConfig()
    config.model_dir = directory

    (output,) = core.create_paddle_predictor(config).run(tensors(feed))

    assert output.shape == [2, 2]
    np.testing.assert_array_equal(output.as_ndarray(), expected)
    assert output.data.float_data() == expected.reshape(-1).tolist()
    assert output.data.length() == 16
    with pytest.raises(DataError, match="holds float32, and was read as int64"):
        output.data.int64_data()


def test_a_compiled_program_predicts_by_the_model_of_a_config(saved: Any) -> None:
    directory, feed, expected = saved
    compiled = fluid.CompiledProgram(fluid.Program())

    compiled.with_inference_optimize(core.AnalysisConfig(directory))

    assert compiled._is_inference
    (output,) = fluid.Executor().run(compiled, feed=tensors(feed))
    np.testing.assert_array_equal(output.as_ndarray(), expected)


def test_inputs_are_copied_by_name(saved: Any) -> None:
    directory, feed, expected = saved
    config = core.AnalysisConfig(directory)
    config.disable_gpu()
    config.switch_use_feed_fetch_ops(False)
    predictor = core.create_paddle_predictor(config).clone()
    assert predictor.get_input_names() == ["words", "dense"]

    words = predictor.get_input_tensor("words")
    words.copy_from_cpu(np.array(feed["words"]))
    words.set_lod(feed["words"].lod())
    predictor.get_input_tensor("dense").copy_from_cpu(feed["dense"])
    predictor.zero_copy_run()

    (name,) = predictor.get_output_names()
    np.testing.assert_array_equal(predictor.get_output_tensor(name).copy_to_cpu(), expected)


def test_a_model_of_two_files_is_predicted_with(saved: Any, tmp_path: Path) -> None:
    directory, feed, expected = saved
    program, feeds, fetches = fluid.io.load_inference_model(directory, fluid.Executor())
    place = tmp_path / "files"
    names = "net", "values"
    fluid.io.save_inference_model(str(place), feeds, fetches, fluid.Executor(), program, *names)
    (place / "model.json").unlink(missing_ok=True)
    config = core.AnalysisConfig(str(place / "net"), str(place / "values"))

    (output,) = core.create_paddle_predictor(config).run(tensors(feed))

    np.testing.assert_allclose(output.as_ndarray(), expected, rtol=1e-6)


def test_what_a_predictor_cannot_do_is_refused(saved: Any) -> None:
    directory, feed, _ = saved
    config = core.AnalysisConfig(directory)

    with pytest.raises(ConfigError, match="names a GPU"):
        config.enable_use_gpu(100, 0)
    with pytest.raises(ConfigError, match="without a model"):
        core.create_paddle_predictor(core.NativeConfig())
    with pytest.raises(AttributeError, match=r"no fluid\.core\.AnalysisConfig\.quux"):
        config.quux()
    with pytest.raises(DataError, match="1 tensors were given for words, dense"):
        core.create_paddle_predictor(config).run(tensors(feed)[:1])
