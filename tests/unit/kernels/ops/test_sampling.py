"""Draws have the distribution they promise and depend on nothing but their coordinates; every class
has a path of its own in the tree."""

from __future__ import annotations

import math

import numpy as np
import pytest

from psrt.kernels.ops import sampling

WEIGHTS = np.array([5.0, 1.0, 0.5, 3.0, 0.25, 8.0, 1.0])
CLASSES = len(WEIGHTS)
PROBABILITIES = {
    sampling.UNIFORM: np.full(CLASSES, 1 / CLASSES),
    sampling.LOG_UNIFORM: np.array(
        [math.log((k + 2) / (k + 1)) / math.log(CLASSES + 1) for k in range(CLASSES)]
    ),
    sampling.CUSTOM: WEIGHTS / WEIGHTS.sum(),
}
SAMPLERS = sorted(PROBABILITIES)


def drawn(sampler, rows, columns=1, seed=3, step=0, first_example=0, first_column=0):
    keep, alias = sampling.alias_table(WEIGHTS / WEIGHTS.sum())
    out = np.full((rows, columns), -1)
    sampling.draw(sampler, CLASSES, keep, alias, seed, step, first_example, first_column, out)
    return out


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("shape", [(100_000, 1), (1, 100_000), (1000, 100)])
def test_draws_have_the_distribution_of_their_sampler(sampler, shape):
    counts = np.bincount(drawn(sampler, *shape).ravel(), minlength=CLASSES)

    expected = PROBABILITIES[sampler] * 100_000
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert len(counts) == CLASSES
    assert chi_square < 22.5  # 6 degrees of freedom: exceeded once in 1,000 seeds


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_draws_of_an_example_do_not_depend_on_who_draws_the_others(sampler):
    whole = drawn(sampler, 10, 4)

    parts = [drawn(sampler, 6, 4), drawn(sampler, 4, 4, first_example=6)]

    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_draws_change_with_seed_step_example_and_position():
    whole = drawn(sampling.UNIFORM, 50, 50)

    assert (drawn(sampling.UNIFORM, 50, 50) == whole).all()
    for other in (
        drawn(sampling.UNIFORM, 50, 50, seed=4),
        drawn(sampling.UNIFORM, 50, 50, step=1),
        drawn(sampling.UNIFORM, 50, 50, first_example=1),
        whole.T,
    ):
        assert 0.1 < (other == whole).mean() < 0.2  # 1 / 7 agree by chance


def test_columns_before_the_first_stay_as_they_are():
    out = drawn(sampling.LOG_UNIFORM, 5, 4, first_column=2)

    assert (out[:, :2] == -1).all()
    np.testing.assert_array_equal(out[:, 2:], drawn(sampling.LOG_UNIFORM, 5, 2))


@pytest.mark.parametrize("weights", [[1.0], [1.0, 1.0], [3.0, 1.0, 0.0], list(range(1, 200))])
def test_alias_table_holds_exactly_the_distribution(weights):
    probabilities = np.array(weights) / sum(weights)

    keep, alias = sampling.alias_table(probabilities)

    held = keep.copy()
    np.add.at(held, alias, 1 - keep)
    np.testing.assert_allclose(held / len(weights), probabilities, atol=1e-12)


@pytest.mark.parametrize("classes", [2, 3, 4, 5, 7, 8, 9, 100])
def test_each_class_has_a_path_of_its_own_to_the_root(classes):
    longest = math.ceil(math.log2(classes))
    nodes, signs = np.empty((classes, longest), np.int64), np.empty((classes, longest), "f4")

    sampling.tree_paths(np.arange(classes), classes, nodes, signs)

    turns = {
        frozenset((n, s) for n, s in zip(row, sign, strict=True) if s != 0)
        for row, sign in zip(nodes.tolist(), signs.tolist(), strict=True)
    }
    lengths = (signs != 0).sum(axis=1)
    assert len(turns) == classes
    assert (0.5**lengths).sum() == 1  # Kraft: the leaves of a tree without gaps
    assert set(nodes.ravel()) == set(range(classes - 1))
    assert (nodes[signs == 0] == 0).all()


@pytest.mark.parametrize(("rows", "count", "width"), [(0, 2, 3), (1, 1, 1), (5, 3, 17)])
def test_gradient_of_row_products(rows, count, width):
    rng = np.random.default_rng(0)
    x, w, d = (
        rng.normal(size=shape).astype("f4")
        for shape in [(rows, width), (rows, count, width), (rows, count)]
    )
    grad_x, grad_w = np.full_like(x, np.nan), np.full_like(w, np.nan)

    sampling.row_dot_grad(x, w, d, grad_x, grad_w)

    np.testing.assert_allclose(grad_x, (d[:, :, None] * w).sum(axis=1), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(grad_w, d[:, :, None] * x[:, None, :], rtol=1e-6)


def test_samples_that_are_the_label_are_excluded():
    logits = np.zeros((2, 4), "f4")

    sampling.exclude_hits_(logits, 1, np.array([7, 5]), np.array([5, 7, 7]))

    np.testing.assert_array_equal(logits, [[0, 0, -np.inf, -np.inf], [0, -np.inf, 0, 0]])
