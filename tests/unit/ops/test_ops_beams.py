"""Beam search: a step, and the sentences of all steps, against examples of Fluid's tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from psrt import Executor, Ragged, Scope, layers, program
from psrt.core.types import Array
from psrt.graph.program import Var

END = 1


def run(build: Callable[[], Any], feed: dict[str, Array | Ragged]) -> list[Any]:
    with program() as p:
        outs = list(build())
    return Executor(p, Scope()).run(feed, outs, roles=("forward",))


def step(
    pre_ids: list[list[int]],
    pre_scores: list[list[float]],
    ids: Any,
    scores: Any,
    sources: list[list[int]],
    beam_size: int = 2,
    is_accumulated: bool = True,
) -> list[Any]:
    def build() -> tuple[Var, ...]:
        k = len(ids[0])
        return layers.beam_search(
            layers.data("pre_ids", dtype="int64", ragged=True),
            layers.data("pre_scores", ragged=True),
            layers.cast(layers.data("ids", (k,)), "int64"),
            layers.data("scores", (k,)),
            layers.data("sources", dtype="int64", ragged=True),
            beam_size=beam_size,
            end_id=END,
            is_accumulated=is_accumulated,
        )

    feed: dict[str, Array | Ragged] = {
        "pre_ids": Ragged.of(pre_ids),
        "pre_scores": Ragged.of(pre_scores, "float32"),
        "ids": np.array(ids, "f4"),
        "scores": np.array(scores, "f4"),
        "sources": Ragged.of(sources),
    }
    return run(build, feed)


def test_the_best_words_of_each_source_are_listed_by_prefix() -> None:
    """The example of Fluid's test of the op: two sources of two prefixes."""
    found, scores, sources, parents = step(
        [[4], [2], [3], [8]],
        [[0.1], [0.2], [0.3], [0.4]],
        [[4, 2, 5], [2, 9, 3], [3, 5, 2], [8, 2, 9]],
        [[0.5, 0.3, 0.2], [0.6, 0.3, 0.1], [0.9, 0.5, 0.1], [0.7, 0.5, 0.1]],
        [[0, 0], [0, 0], [], []],
    )

    assert found.values.tolist() == [4, 2, 3, 8]
    assert found.offsets.tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_allclose(scores.values, [0.5, 0.6, 0.9, 0.7])
    assert sources.offsets.tolist() == [0, 2, 4, 4, 4]
    assert parents.tolist() == [0, 1, 2, 3]


def test_a_prefix_that_ended_goes_on_as_it_is_and_a_source_that_ended_is_left_out() -> None:
    found, scores, sources, parents = step(
        [[END], [5], [END], [END]],
        [[-0.5], [-1.0], [-0.1], [-0.2]],
        [[7, 8], [7, END], [7, 8], [7, 8]],
        [[-0.6, -0.7], [-2.0, -1.5], [-0.1, -0.1], [-0.1, -0.1]],
        [[0, 0], [0, 0], [], []],
    )

    assert [list(part) for part in np.split(found.values, found.offsets[1:-1])] == [
        [END],
        [END],
        [],
        [],
    ]
    np.testing.assert_allclose(scores.values, [-0.5, -1.5])
    assert parents.tolist() == [0, 1]
    assert sources.values.tolist() == [1, 1, 0, 0]


def test_probabilities_are_added_as_logarithms() -> None:
    _, scores, _, _ = step([[5]], [[-1.0]], [[7, 8]], [[0.25, 0.5]], [[0]], is_accumulated=False)

    np.testing.assert_allclose(scores.values, [-1 + np.log(0.5), -1 + np.log(0.25)], rtol=1e-6)


def decoded(steps: list[tuple[list[int], list[float], list[int], list[int]]]) -> list[Any]:
    """`beam_search_decode` of steps: words, scores, words by prefix, prefixes by source."""

    def build() -> tuple[Var, ...]:
        ids, lengths, counts = (
            layers.data(name, dtype="int64", ragged=True) for name in ("ids", "lengths", "counts")
        )
        scores = layers.data("scores", ragged=True)
        return layers.beam_search_decode(ids, scores, lengths, counts, 2, END)

    ids, scores, lengths, counts = zip(*steps, strict=True)
    feed: dict[str, Array | Ragged] = {
        "ids": Ragged.of(list(ids)),
        "scores": Ragged.of(list(scores), "float32"),
        "lengths": Ragged.of(list(lengths)),
        "counts": Ragged.of(list(counts)),
    }
    return run(build, feed)


def test_sentences_are_collected_from_their_last_words() -> None:
    """The example of Fluid's test of the op: five steps of two sources."""
    words = [[0, 0], [2, 3, 4, 5], [3, 1, 5, 4], [1, 1, 3, 5], [5, 1]]
    lengths = [[1, 1], [2, 2], [2, 0, 2, 0], [1, 1, 1, 1], [0, 0, 2, 0]]
    counts = [[1, 1], [1, 1], [2, 2], [2, 2], [2, 2]]
    floats = [[float(word) for word in each] for each in words]

    found, scores, sources = decoded([*zip(words, floats, lengths, counts, strict=True)])

    assert sources.offsets.tolist() == [0, 2, 4]
    assert found.offsets.tolist() == [0, 4, 7, 12, 17]
    assert found.values.tolist() == [0, 2, 3, 1, 0, 2, 1, 0, 4, 5, 3, 5, 0, 4, 5, 3, 1]
    assert scores.values.tolist() == found.values.tolist()
