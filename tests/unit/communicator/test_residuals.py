"""Rounding errors go into the next gradient; an inf or a NaN goes into none."""

from __future__ import annotations

import numpy as np
import pytest

from psrt.communicator.requests.residuals import Residuals
from psrt.core.specs import Constant, ConstantRate, DenseTableSpec, Sgd
from psrt.kernels.precision.narrow import widened

SIZE = 600
BLOCKS = [
    DenseTableSpec(f"w.block{n}", "w", (SIZE,), at, 300, Constant(), Sgd(), ConstantRate(0.1), 1)
    for n, at in enumerate((0, 300))
]


def sent(residuals: Residuals, gradient: np.ndarray, precision: str) -> np.ndarray:
    made = residuals.narrowed("w", gradient, BLOCKS, precision)
    return np.concatenate([widened(each.tensors, each.factor) for each in made])


@pytest.mark.parametrize("precision", ["float16", "bfloat16", "int8"])
@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_a_gradient_that_is_not_finite_spoils_no_later_one(bad: float, precision: str) -> None:
    residuals = Residuals()
    gradient = np.random.default_rng(1).standard_normal(SIZE).astype(np.float32)
    spoilt = gradient.copy()
    spoilt[5] = bad

    with_bad = sent(residuals, spoilt, precision)
    after = [sent(residuals, gradient, precision) for _ in range(4)]

    assert not np.isfinite(with_bad[5])
    assert np.isfinite(after).all()
    lost = np.abs(gradient).max() / 100
    np.testing.assert_allclose(np.sum(after, axis=0), 4 * gradient, atol=2 * lost)


def test_the_last_exact_push_leaves_nothing_of_an_inf_either() -> None:
    residuals, gradient = Residuals(), np.ones(SIZE, np.float32)
    sent(residuals, gradient, "float16")

    sent(residuals, np.full(SIZE, np.inf, np.float32), "float32")

    np.testing.assert_array_equal(sent(residuals, gradient, "float32"), gradient)
