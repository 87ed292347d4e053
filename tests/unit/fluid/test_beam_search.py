"""Decoding by beam search in a `While`, as the book's chapter on translation does it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import psrt.fluid as fluid
from psrt.core.errors import ProgramError

layers = fluid.layers
WORDS, WIDTH, BEAM, END, LONGEST = 7, 4, 2, 1, 6
BEGIN = 2


def decoder() -> tuple[fluid.Variable, fluid.Variable]:
    """Words and scores of the best sentences for each first state."""
    longest = layers.fill_constant([1], "int64", LONGEST)
    step = layers.zeros([1], "int64")
    states, ids, scores = (layers.create_array(dtype) for dtype in ("float32", "int64", "float32"))
    layers.array_write(layers.data("state", [WIDTH]), step, states)
    first_ids = layers.data("init_ids", [1], dtype="int64", lod_level=2)
    layers.array_write(first_ids, step, ids)
    first_scores = layers.data("init_scores", [1], dtype="float32", lod_level=2)
    layers.array_write(first_scores, step, scores)
    going = layers.less_than(step, longest)
    with layers.While(going).block():
        words, state, score = (layers.array_read(array, step) for array in (ids, states, scores))
        expanded = layers.sequence_expand(state, score)
        rows = layers.embedding(words, [WORDS, WIDTH], param_attr="rows", is_sparse=True)
        parts = [
            layers.fc(part, WIDTH, bias_attr=False, param_attr=name)
            for part, name in ((expanded, "u"), (rows, "v"))
        ]
        state = layers.tanh(parts[0] + parts[1])
        with_lists = layers.lod_reset(state, y=score)
        chances = layers.fc(with_lists, WORDS, act="softmax", param_attr="w", bias_attr=False)
        best, at = layers.topk(chances, BEAM)
        totals = layers.elementwise_add(layers.log(best), layers.reshape(score, [-1]), axis=0)
        chosen, chosen_scores = layers.beam_search(words, score, at, totals, BEAM, END, level=0)
        layers.increment(step)
        layers.array_write(state, step, states)
        layers.array_write(chosen, step, ids)
        layers.array_write(chosen_scores, step, scores)
        shorter = layers.less_than(step, longest)
        some = layers.logical_not(layers.is_empty(chosen))
        layers.logical_and(shorter, some, out=going)
    return layers.beam_search_decode(ids, scores, BEAM, END)


def searched(state: Any, values: dict[str, Any]) -> list[tuple[float, list[int]]]:
    """The twin: the best sentences from one first state, by lists."""
    beams = [(0.0, [BEGIN], state)]
    for _ in range(LONGEST):
        found: list[Any] = []
        for score, words, before in beams:
            if words[-1] == END:
                found.append((score, words, before))
                continue
            after = np.tanh(before @ values["u"] + values["rows"][words[-1]] @ values["v"])
            logits = after @ values["w"]
            chances = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
            for word in np.argsort(-chances)[:BEAM].tolist():
                found.append((score + np.log(chances[word]), [*words, word], after))
        beams = sorted(found, key=lambda beam: -beam[0])[:BEAM]
        if all(words[-1] == END for _, words, _ in beams):
            break
    return [(score, words) for score, words, _ in beams]


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_the_sentences_are_those_of_a_search_by_lists(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = {"rows": (WORDS, WIDTH), "u": (WIDTH, WIDTH), "v": (WIDTH, WIDTH), "w": (WIDTH, WORDS)}
    values = {name: rng.normal(size=size).astype("f4") * 2 for name, size in sizes.items()}
    states = rng.normal(size=(3, WIDTH)).astype("f4")
    found, scores = decoder()
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    for name, value in values.items():
        fluid.global_scope().find_var(name).get_tensor().set(value, None)
    ones = [[1] * 3] * 2
    feed = {
        "state": states,
        "init_ids": fluid.create_lod_tensor(np.full((3, 1), BEGIN), ones, None),
        "init_scores": fluid.create_lod_tensor(np.zeros((3, 1), "f4"), ones, None),
    }

    ids, totals = exe.run(feed=feed, fetch_list=[found, scores], return_numpy=False)

    by_source, by_sentence = ids.lod()
    assert totals.lod() == ids.lod()
    words, numbers = np.array(ids).ravel(), np.array(totals).ravel()
    for source, state in enumerate(states):
        expected = searched(state, values)
        sentences = range(by_source[source], by_source[source + 1])
        assert len(sentences) == len(expected)
        for at, (score, sentence) in zip(sentences, expected, strict=True):
            part = slice(by_sentence[at], by_sentence[at + 1])
            assert words[part].tolist() == sentence
            np.testing.assert_allclose(numbers[part][-1], score, rtol=1e-5)


def test_lists_of_one_level_are_refused() -> None:
    words, scores = layers.data("w", [1], dtype="int64", lod_level=1), layers.data("s", [1])

    with pytest.raises(ProgramError, match="outer lists of a var of lod_level 2") as refused:
        layers.beam_search(words, scores, None, scores, 2, END)
    assert "lod_level=2" in refused.value.hint
    array = layers.array_write(scores, layers.zeros([1], "int64"))
    with pytest.raises(ProgramError, match="no two levels"):
        layers.beam_search_decode(array, array, 2, END)


def test_elements_of_an_array_may_differ_in_rows() -> None:
    lists = layers.data("lists", [2], lod_level=1)
    zero, one = layers.zeros([1], "int64"), layers.fill_constant([1], "int64", 1)
    array = layers.array_write(layers.data("x", [2]), zero)
    first = layers.array_read(array, zero)
    layers.array_write(lists, one, array)
    outs = [first, layers.array_read(array, one), layers.array_length(array)]
    x, rows = np.eye(2, dtype="f4"), np.arange(10, dtype="f4").reshape(5, 2)
    feed = {"x": x, "lists": fluid.create_lod_tensor(rows, [[4, 1]], None)}

    read = fluid.Executor().run(feed=feed, fetch_list=outs)

    np.testing.assert_array_equal(read[0], x)
    np.testing.assert_array_equal(read[1], rows)
    assert read[2].tolist() == [2]


def test_an_array_of_lists_keeps_them_and_refuses_rows_without() -> None:
    lists = layers.data("lists", [2], lod_level=1)
    zero = layers.zeros([1], "int64")
    array = layers.array_write(lists, zero)
    again = layers.sequence_pool(layers.array_read(array, zero), "sum")
    rows = np.arange(10, dtype="f4").reshape(5, 2)
    feed = {"lists": fluid.create_lod_tensor(rows, [[4, 0, 1]], None)}

    (found,) = fluid.Executor().run(feed=feed, fetch_list=[again])

    np.testing.assert_array_equal(found, [rows[:4].sum(0), [0, 0], rows[4]])
    with pytest.raises(ProgramError, match="lists of more levels"):
        layers.array_write(layers.data("x", [2]), zero, array)
