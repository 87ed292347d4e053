"""Chains of tags against sums over all chains, and finite differences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from psrt import Executor, Ragged, Scope, layers, program
from psrt.core.errors import ProgramError
from psrt.core.types import Array
from psrt.graph.program import Var
from tests.support.gradcheck import check_gradients

RNG = np.random.default_rng(3)
TAGS, LENGTHS = 3, [2, 0, 4, 1]
OFFSETS = np.cumsum([0, *LENGTHS], dtype=np.int64)
X = RNG.normal(size=(sum(LENGTHS), TAGS)).astype("f4")
LABELS = RNG.integers(0, TAGS, size=sum(LENGTHS))
WEIGHTS = RNG.normal(size=(TAGS + 2, TAGS)).astype("f4")
FEED = {"x": Ragged(X, OFFSETS), "label": Ragged(LABELS, OFFSETS)}


def score(x: Array, tags: tuple[int, ...]) -> float:
    """The weight of one chain, term by term."""
    total = WEIGHTS[0, tags[0]] + WEIGHTS[1, tags[-1]]
    total += sum(row[tag] for row, tag in zip(x, tags, strict=True))
    return float(total + sum(WEIGHTS[2 + a, b] for a, b in itertools.pairwise(tags)))


def chains(x: Array) -> dict[tuple[int, ...], float]:
    return {tags: score(x, tags) for tags in itertools.product(range(TAGS), repeat=len(x))}


def by_example(values: Array) -> list[Array]:
    return np.split(values, OFFSETS[1:-1])


def run() -> list[Array | Ragged]:
    with program() as built:
        x, label = layers.data("x", (TAGS,), ragged=True), layers.data("label", (), "int64", True)
        outs = [
            layers.linear_chain_crf(x, label, param="crf"),
            layers.crf_decoding(x, "crf"),
            layers.crf_decoding(x, "crf", label),
        ]
    scope = Scope()
    scope.init_parameters(built)
    scope["crf"] = WEIGHTS
    return Executor(built, scope).run(FEED, outs, roles=("forward",))


def test_a_chain_has_its_share_of_all_chains_and_the_best_one_is_found() -> None:
    costs, paths, agree = run()

    for row, (x, tags) in enumerate(zip(by_example(X), by_example(LABELS), strict=True)):
        every = chains(x) if len(x) else {}
        total = np.log(sum(np.exp(value) for value in every.values())) if every else 0.0
        own = every.get(tuple(tags.tolist()), 0.0)
        np.testing.assert_allclose(costs[row, 0], total - own, rtol=1e-5, atol=1e-6)
        path = by_example(paths.values)[row][:, 0]
        best = max(every, key=lambda tags: every[tags]) if every else ()
        assert tuple(path.tolist()) == best
        np.testing.assert_array_equal(by_example(agree.values)[row][:, 0], path == tags)


def test_gradients_of_a_chain() -> None:
    def build() -> Var:
        x = layers.fc(layers.data("x", (TAGS,), ragged=True), TAGS, param="in")
        costs = layers.linear_chain_crf(x, layers.data("label", (), "int64", True), param="crf")
        return layers.reduce_sum(costs * layers.create_parameter((1,), param="scale"))

    check_gradients(build, FEED)


def test_what_is_no_chain_is_refused() -> None:
    with program():
        x, label = layers.data("x", (TAGS,), ragged=True), layers.data("label", (), "int64", True)
        with pytest.raises(ProgramError, match="not ragged floats"):
            layers.linear_chain_crf(label, label)
        with pytest.raises(ProgramError, match="not one int64 tag an element"):
            layers.linear_chain_crf(x, x)
        layers.create_parameter((4, 3), param="small")
        with pytest.raises(ProgramError, match="small exists with shape"):
            layers.crf_decoding(x, "small")


def test_a_tag_that_does_not_exist_fails_the_step() -> None:
    with program() as built:
        x, label = layers.data("x", (TAGS,), ragged=True), layers.data("label", (), "int64", True)
        cost = layers.linear_chain_crf(x, label)
    scope = Scope()
    scope.init_parameters(built)
    wrong = {**FEED, "label": Ragged(np.full(len(LABELS), TAGS), OFFSETS)}

    with pytest.raises(Exception, match="label holds tag 3, which is not one of 0 to 2"):
        Executor(built, scope).run(wrong, [cost], roles=("forward",))
