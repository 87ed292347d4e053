"""The optimizers of click models follow their published formulas, on blocks and on rows."""

from __future__ import annotations

import numpy as np
import pytest

from psrt.core import specs
from psrt.kernels.optimizers import RowTable, TouchedRows, rule_of
from psrt.kernels.optimizers.row_headers import HEADER_WORDS, UPDATES_WORD
from tests.support.optimizer_formulas import CTR, ROW_WISE, Published

RATE = 0.2
WIDTHS = [1, 3, 16, 70]

every_optimizer = pytest.mark.parametrize("optimizer", CTR.values(), ids=CTR)
also_row_wise = pytest.mark.parametrize(
    "optimizer", (CTR | ROW_WISE).values(), ids=list(CTR | ROW_WISE)
)


def gradients(seed: int, shape: tuple[int, ...], count: int = 8) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, *shape), np.float32)


@also_row_wise
@pytest.mark.parametrize("size", [0, 1, 17, 200])
def test_a_block_follows_the_formula(optimizer: specs.Optimizer, size: int) -> None:
    rule = rule_of(optimizer)
    w = np.random.default_rng(size).uniform(-0.5, 0.5, size).astype(np.float32)
    state = np.zeros((rule.state_vectors, size), np.float32)
    state += np.array(rule.first, np.float32)[:, None]
    oracle = Published(optimizer, w)

    for t, gradient in enumerate(gradients(1, (size,)) if size else [], start=1):
        rule.update_block(w, state, gradient, RATE, t)
        oracle.apply(gradient, RATE)

    np.testing.assert_allclose(w, oracle.w, atol=2e-6)


@also_row_wise
@pytest.mark.parametrize("width", WIDTHS)
def test_rows_follow_the_formula_each_by_its_own_count(
    optimizer: specs.Optimizer, width: int
) -> None:
    rule = rule_of(optimizer)
    first = rule.first_state(width)
    slab = np.zeros((5, HEADER_WORDS + width + len(first)), np.float32)
    slab[:, HEADER_WORDS : HEADER_WORDS + width] = gradients(2, (5, width), 1)[0] / 10
    slab[:, HEADER_WORDS + width :] = first
    table = RowTable(slab, HEADER_WORDS, slab, HEADER_WORDS + width)
    oracles = [Published(optimizer, row[HEADER_WORDS : HEADER_WORDS + width]) for row in slab]

    for t, gradient in enumerate(gradients(3, (3, width)), start=1):
        slots = np.array([4, t % 3, 3], np.int32)
        order = np.array([2, 0, 1], np.int32)
        slab.view(np.int32)[slots, UPDATES_WORD] += 1
        rule.update_rows(table, TouchedRows(slots, order, gradient), RATE, t)
        for slot, position in zip(slots, order, strict=True):
            oracles[slot].apply(gradient[position], RATE)

    got = slab[:, HEADER_WORDS : HEADER_WORDS + width]
    np.testing.assert_allclose(got, [oracle.w for oracle in oracles], atol=2e-6)


@pytest.mark.parametrize("name", ["ctr_adagrad", "ctr_shared_adam", "row_wise_adagrad"])
def test_shared_state_costs_a_row_as_much_at_any_width(name: str) -> None:
    rule = rule_of((CTR | ROW_WISE)[name])

    assert len(rule.first_state(1)) == len(rule.first_state(64)) == rule.state_vectors


@every_optimizer
def test_no_weight_leaves_its_bounds_and_nan_is_not_hidden(optimizer: specs.Optimizer) -> None:
    rule, g = rule_of(optimizer), np.array([1e6, -1e6, 0.0, np.nan], np.float32)
    apart = isinstance(optimizer, specs.CtrAdagrad | specs.CtrSharedAdam)
    if apart:
        g[3] = 0.0  # one number of state for all four
    w, state = np.zeros(4, np.float32), np.zeros((rule.state_vectors, 4), np.float32)

    for t in range(1, 80):
        rule.update_block(w, state, g, 10.0, t)

    assert w[:3].tolist() == pytest.approx([-0.6, 0.5, 0.0])
    assert apart or np.isnan(w[3])


def test_a_single_row_of_adagrad_moves_as_computed_by_hand() -> None:
    # g0 = 3, state 0: the whole step; then s = (9 + 1) / 2 = 5, so √(3 / 8) of it.
    rule = rule_of(specs.CtrAdagrad(3.0))
    slab = np.zeros((1, HEADER_WORDS + 3), np.float32)
    table = RowTable(slab, HEADER_WORDS, slab, HEADER_WORDS + 2)
    touched = TouchedRows(
        np.zeros(1, np.int32), np.zeros(1, np.int32), np.array([[3.0, -1.0]], np.float32)
    )

    rule.update_rows(table, touched, 0.1, 1)
    rule.update_rows(table, touched, 0.1, 2)

    step = 1 + np.sqrt(3 / 8)
    np.testing.assert_allclose(slab[0, HEADER_WORDS:], [-0.3 * step, 0.1 * step, 10.0], rtol=1e-6)


def test_row_wise_adagrad_moves_as_computed_by_hand() -> None:
    # s = (9 + 1) / 2 = 5, then 10; the step is lr · g / √s.
    rule = rule_of(specs.RowWiseAdagrad(epsilon=0.0))
    w, state, g = np.zeros(2, np.float32), np.zeros((1, 2), np.float32), np.array([3, -1], "f4")

    rule.update_block(w, state, g, 0.1, 1)
    rule.update_block(w, state, g, 0.1, 2)

    step = 0.1 * (1 / np.sqrt(5) + 1 / np.sqrt(10))
    np.testing.assert_allclose(w, [-3 * step, step], rtol=1e-6)
