"""Update rules agree with numpy to the bit, on blocks and on slab rows, however they are cut."""

from __future__ import annotations

import math

import numpy as np
import pytest

from psrt.kernels import optimizers, oracle
from psrt.kernels.optimizers import HEADER_WORDS, UPDATES_WORD

STATES = {"sgd": 0, "adagrad": 1, "adam": 2}
DENSE = {"sgd": (0.1,), "adagrad": (0.1, 1e-6), "adam": (0.1, 0.9, 0.999, 1e-8)}
ROWS = {"sgd": (0.1,), "adagrad": (0.1, 1e-6), "adam": (0.1, 0.9, 0.999, 1e-8)}
SIZES = [0, 1, 15, 16, 17, 1000]
WIDTHS = [1, 3, 8, 16, 17, 64]


def block(name: str, size: int):
    """[w, state…, g] of one block; state is positive, the gradient read-only."""
    rng = np.random.default_rng(size)
    arrays = [rng.standard_normal(size).astype(np.float32)]
    arrays += [rng.random(size).astype(np.float32) for _ in range(STATES[name])]
    gradient = rng.standard_normal(size).astype(np.float32)
    gradient.flags.writeable = False
    return [*arrays, gradient]


def batch(name: str, width: int):
    """(slab, slots, grads): eight rows, of which some are updated twice and one never."""
    rng = np.random.default_rng(width)
    slab = rng.random((8, HEADER_WORDS + width * (1 + STATES[name]))).astype(np.float32)
    slab[:, :HEADER_WORDS] = 0
    slots = np.array([3, 0, 7, 3, 1, 2, 3, 5, 6], np.int32)
    grads = rng.standard_normal((len(slots), width)).astype(np.float32)
    grads.flags.writeable = False
    return slab, slots, grads


def extra(name: str) -> tuple:
    return (optimizers.adam_corrections(0.9, 0.999),) if name == "adam" else ()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", STATES)
def test_block_update_equals_its_twin(name, size):
    ours, expected = block(name, size), block(name, size)

    getattr(optimizers, f"{name}_")(*ours, *DENSE[name])

    getattr(oracle, f"{name}_")(*expected, *DENSE[name])
    for got, want in zip(ours, expected, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("cut", [1, 7, 16, 33])
@pytest.mark.parametrize("name", STATES)
def test_block_update_does_not_depend_on_how_the_block_is_sliced(name, cut):
    whole, sliced = block(name, 100), block(name, 100)
    update = getattr(optimizers, f"{name}_")

    update(*whole, *DENSE[name])
    update(*[array[:cut] for array in sliced], *DENSE[name])
    update(*[array[cut:] for array in sliced], *DENSE[name])

    for one, other in zip(whole, sliced, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", STATES)
def test_row_update_equals_its_twin(name, width):
    slab, slots, grads = batch(name, width)
    expected, _, _ = batch(name, width)

    getattr(optimizers, f"{name}_rows_")(
        slab, slots, grads, HEADER_WORDS, *ROWS[name], *extra(name)
    )

    getattr(oracle, f"{name}_rows_")(expected, slots, grads, HEADER_WORDS, *ROWS[name])
    np.testing.assert_array_equal(slab.view(np.int32), expected.view(np.int32))


@pytest.mark.parametrize("name", STATES)
def test_row_update_of_no_rows_changes_nothing(name):
    slab, slots, grads = batch(name, 4)
    before = slab.copy()

    getattr(optimizers, f"{name}_rows_")(
        slab, slots[:0], grads[:0], HEADER_WORDS, *ROWS[name], *extra(name)
    )

    np.testing.assert_array_equal(slab, before)


@pytest.mark.parametrize("name", STATES)
def test_header_counts_the_updates_of_each_row(name):
    slab, slots, grads = batch(name, 4)

    getattr(optimizers, f"{name}_rows_")(
        slab, slots, grads, HEADER_WORDS, *ROWS[name], *extra(name)
    )

    updates = slab.view(np.int32)[:, UPDATES_WORD]
    assert updates.tolist() == [1, 1, 1, 3, 0, 1, 1, 1]


def test_adam_takes_the_published_step():
    """Algorithm 1 of Kingma & Ba in float64, ten steps."""
    lr, beta1, beta2, eps = 0.01, 0.9, 0.999, 1e-8
    gradients = np.random.default_rng(0).standard_normal((10, 5))
    w, m, v = (np.zeros(5, np.float32) for _ in range(3))

    for t, g in enumerate(gradients, start=1):
        step_size, eps_hat = optimizers.adam_step_size(lr, beta1, beta2, eps, t)
        optimizers.adam_(w, m, v, g.astype(np.float32), step_size, beta1, beta2, eps_hat)

    theta, first, second = np.zeros(5), np.zeros(5), np.zeros(5)
    for t, g in enumerate(gradients, start=1):
        first = beta1 * first + (1 - beta1) * g
        second = beta2 * second + (1 - beta2) * g**2
        unbiased = first / (1 - beta1**t), second / (1 - beta2**t)
        theta = theta - lr * unbiased[0] / (np.sqrt(unbiased[1]) + eps)
    np.testing.assert_allclose(w, theta, rtol=1e-4)


@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.0, 0.5), (0.5, 0.0), (0.0, 0.0), (0.99, 0.9)])
def test_adam_corrections_end_where_they_are_one(betas):
    corrections = optimizers.adam_corrections(*betas)

    first = math.sqrt(1 - betas[1]) / (1 - betas[0]), math.sqrt(1 - betas[1])
    np.testing.assert_allclose(corrections[0], first, rtol=1e-6)
    np.testing.assert_array_equal(corrections[-1], [1, 1])
