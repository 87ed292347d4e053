"""Vars of lod_level 2: fed, pooled level by level, expanded, trained, saved and fetched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt.core.errors import ProgramError
from psrt.core.tensors import Ragged

layers = fluid.layers
LEVELS = [[2, 0, 1], [3, 0, 2]]
"""Three documents of two, no and one sentences, of three, no and two words."""
WORDS = np.array([[4], [1], [2], [0], [4]])
TABLE = np.arange(15, dtype=np.float32).reshape(5, 3) / 7


def documents() -> fluid.Variable:
    return layers.data("words", [1], dtype="int64", lod_level=2)


def rows(words: fluid.Variable, is_sparse: bool = False) -> fluid.Variable:
    return layers.embedding(words, [5, 3], is_sparse=is_sparse, param_attr="table")


def run(*fetches: fluid.Variable, feed: Any = None, **options: Any) -> list[Any]:
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    table = fluid.global_scope().find_var("table")
    if table is not None:
        table.get_tensor().set(TABLE, None)
    given = feed or {"words": fluid.create_lod_tensor(WORDS, LEVELS, None)}
    return exe.run(feed=given, fetch_list=list(fetches), **options)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_words_are_pooled_to_sentences_and_these_to_documents(is_sparse: bool) -> None:
    sentences = layers.sequence_pool(rows(documents(), is_sparse), "average")
    found = layers.sequence_pool(sentences, "sum")

    inner, outer = run(sentences, found)

    assert sentences.lod_level == 1
    expected = np.array([TABLE[[4, 1, 2]].mean(0), np.zeros(3), TABLE[[0, 4]].mean(0)])
    assert isinstance(inner, Ragged)
    np.testing.assert_array_equal(inner.offsets, [0, 2, 2, 3])
    np.testing.assert_allclose(inner.values, expected, rtol=1e-6)
    np.testing.assert_allclose(outer, [expected[0] + expected[1], np.zeros(3), expected[2]])


def test_first_and_last_steps_are_those_of_the_innermost_lists() -> None:
    found = rows(documents())
    first, last = layers.sequence_first_step(found), layers.sequence_last_step(found)

    firsts, lasts = run(layers.sequence_first_step(first), layers.sequence_last_step(last))

    np.testing.assert_array_equal(firsts, [TABLE[4], np.zeros(3), TABLE[0]])
    np.testing.assert_array_equal(lasts, [np.zeros(3), np.zeros(3), TABLE[4]])


def test_a_fetched_tensor_has_both_levels() -> None:
    words = documents()
    wide = layers.fc(rows(words), 2)

    tensors = run(words, wide, return_numpy=False)

    for tensor in tensors:
        assert tensor.recursive_sequence_lengths() == LEVELS
    np.testing.assert_array_equal(np.array(tensors[0]), WORDS)


def test_rows_of_documents_are_expanded_by_either_level() -> None:
    words = documents()
    x = layers.data("x", [1])
    tags = layers.data("tags", [1], lod_level=1)
    of_sentences = layers.sequence_expand(x, words, ref_level=0)
    of_lists = layers.sequence_expand(tags, words, ref_level=0)
    of_words = layers.sequence_expand(x, words)
    feed = {
        "words": fluid.create_lod_tensor(WORDS, LEVELS, None),
        "x": np.array([[1.0], [2.0], [3.0]], "float32"),
        "tags": fluid.create_lod_tensor(np.arange(4, dtype="float32")[:, None], [[2, 1, 1]], None),
    }

    first, second, third = run(of_sentences, of_lists, of_words, feed=feed)

    np.testing.assert_array_equal(first.values.ravel(), [1, 1, 3])
    np.testing.assert_array_equal(second.values.ravel(), [0, 1, 0, 1, 3])
    np.testing.assert_array_equal(second.offsets, [0, 2, 4, 5])
    np.testing.assert_array_equal(third.values.ravel(), [1, 1, 1, 3, 3])
    with pytest.raises(ProgramError, match=r"ref_level 2 of .*, which has 2"):
        layers.sequence_expand(x, words, ref_level=2)
    with pytest.raises(ProgramError, match=r"ref_level 1 of .*, which has 1"):
        layers.sequence_expand(x, tags, ref_level=1)


def test_lists_that_are_reset_to_those_of_lists_of_lists_have_both_levels() -> None:
    words = documents()
    flat = layers.lod_reset(rows(words), target_lod=[0, 5])

    (tensor,) = run(layers.lod_reset(flat, y=words), return_numpy=False)

    assert tensor.recursive_sequence_lengths() == LEVELS


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_model_over_documents_trains(replicas: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPU_NUM", str(replicas))
    label = layers.data("label", [1])
    sentences = layers.fc(layers.sequence_pool(rows(documents(), True), "sum"), 3, act="tanh")
    predicted = layers.fc(layers.sequence_pool(sentences, "max"), 1)
    loss = layers.mean(layers.square_error_cost(predicted, label))
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    program: Any = fluid.default_main_program()
    if replicas > 1:
        program = fluid.CompiledProgram(program).with_data_parallel(loss_name=loss.name)
    feeder = fluid.DataFeeder(["words", "label"])
    examples = [([[4, 1, 2], []], 1.0), ([[0, 4]], -1.0), ([], 0.5), ([[3]], 0.0)]

    losses = [
        exe.run(program, feed=feeder.feed(examples), fetch_list=[loss])[0].mean() for _ in range(60)
    ]

    assert losses[-1] < losses[0] / 4


def test_a_loader_feeds_lists_of_lists() -> None:
    words, label = documents(), layers.data("label", [1])
    pooled = layers.sequence_pool(layers.sequence_pool(rows(words), "sum"), "sum")
    added = layers.reduce_sum(pooled, dim=1, keep_dim=True) + label
    loader = fluid.io.DataLoader.from_generator([words, label], 2)
    loader.set_sample_list_generator(lambda: iter([[([[4], [1, 1]], 1.0), ([[2]], 2.0)]]))

    (batch,) = loader()
    (found,) = run(added, feed=batch)

    expected = [TABLE[[4, 1, 1]].sum() + 1, TABLE[2].sum() + 2]
    np.testing.assert_allclose(found.ravel(), expected, rtol=1e-6)


def test_a_saved_model_is_fed_lists_of_lists(tmp_path: Path) -> None:
    words = documents()
    pooled = layers.sequence_pool(layers.sequence_pool(rows(words), "sum"), "max")
    feed = {"words": fluid.create_lod_tensor(WORDS, LEVELS, None)}
    (before,) = run(pooled, feed=feed)
    exe = fluid.Executor()

    fluid.io.save_inference_model(str(tmp_path), ["words"], [pooled], exe)
    program, feeds, fetches = fluid.io.load_inference_model(str(tmp_path), exe)

    assert feeds == ["words"]
    np.testing.assert_array_equal(exe.run(program, feed=feed, fetch_list=fetches)[0], before)


def test_a_declared_var_that_no_layer_reads_is_not_fed() -> None:
    documents()

    (found,) = run(rows(layers.data("id", [1], dtype="int64")), feed={"id": np.array([[3]])})

    np.testing.assert_array_equal(found, TABLE[[3]])
