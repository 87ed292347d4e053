"""Initial values are a pure function of (seed, key, column), however they are asked."""

from __future__ import annotations

import math

import numpy as np
import pytest

from psrt.core.specs import Constant, Normal, TruncatedNormal, Uniform
from psrt.kernels.tables.initialize import fill_block, fill_rows
from tests.support import twins

INITIALIZERS = [Constant(0.25), Uniform(-0.1, 0.3), Normal(1.0, 0.5), TruncatedNormal(1.0, 0.5)]
IDS = np.array([0, 1, -1, 2**63 - 1, -(2**63), 10**12], np.int64)


def block(initializer, size, offset=0, seed=7):
    out = np.empty(size, np.float32)
    fill_block(initializer, seed, offset, out)
    return out


def rows(initializer, ids, width=16, seed=7):
    out = np.empty((len(ids), width), np.float32)
    fill_rows(initializer, seed, ids, out)
    return out


@pytest.mark.parametrize("seed", [0, 7, -1, 2**63 - 1])
@pytest.mark.parametrize("initializer", INITIALIZERS)
def test_rows_equal_their_twin(initializer, seed):
    ids = np.concatenate([IDS, np.arange(100)])

    expected = twins.initial_values(initializer, seed, ids[:, None], np.arange(16)[None, :])

    np.testing.assert_array_max_ulp(rows(initializer, ids, 16, seed), expected, maxulp=1)


@pytest.mark.parametrize("initializer", INITIALIZERS)
def test_block_equals_its_twin(initializer):
    expected = twins.initial_values(initializer, 7, np.arange(10, 1010), np.zeros(1, np.int64))

    np.testing.assert_array_max_ulp(block(initializer, 1000, 10), expected, maxulp=1)


@pytest.mark.parametrize("cut", [1, 8, 33, 99])
@pytest.mark.parametrize("initializer", INITIALIZERS)
def test_values_do_not_depend_on_how_the_block_is_sliced(initializer, cut):
    whole = block(initializer, 100)

    sliced = np.concatenate([block(initializer, cut), block(initializer, 100 - cut, cut)])

    np.testing.assert_array_equal(whole, sliced)


@pytest.mark.parametrize("initializer", INITIALIZERS)
def test_row_does_not_depend_on_its_neighbours_or_on_the_width_asked(initializer):
    together = rows(initializer, IDS, 17)

    for position in range(len(IDS)):
        alone = rows(initializer, IDS[position : position + 1], 5)
        np.testing.assert_array_equal(alone[0], together[position, :5])


@pytest.mark.parametrize("initializer", INITIALIZERS)
def test_no_rows_and_empty_blocks_are_fine(initializer):
    assert block(initializer, 0).shape == (0,)
    assert rows(initializer, IDS[:0]).shape == (0, 16)


def test_known_values_never_change():
    """A restored job must see the rows it would have seen: these are part of the format."""
    assert block(Uniform(-1.0, 1.0), 3).tolist() == [
        0.4115307331085205,
        -0.21290862560272217,
        0.004065871238708496,
    ]
    assert block(Normal(0.0, 1.0), 3).tolist() == [
        0.31587159633636475,
        0.7212615013122559,
        1.099771499633789,
    ]


def test_a_truncated_normal_number_is_within_two_deviations():
    values = block(TruncatedNormal(3.0, 2.0), 100_000)
    kept = block(Normal(3.0, 2.0), 100_000)

    # The deviation of a normal number within ±2 is √(1 − 4 φ(2) / (2 Φ(2) − 1)).
    density, inside = math.exp(-2.0) / math.sqrt(2.0 * math.pi), math.erf(2.0 / math.sqrt(2.0))
    assert np.abs(values - 3.0).max() <= 4.0
    assert values.mean() == pytest.approx(3.0, abs=0.02)
    assert values.std() == pytest.approx(2.0 * math.sqrt(1.0 - 4.0 * density / inside), abs=0.02)
    near = np.abs(kept - 3.0) <= 4.0
    np.testing.assert_array_equal(values[near], kept[near])


def test_uniform_fills_its_range_evenly():
    values = block(Uniform(-2.0, 6.0), 100_000)

    assert -2.0 <= values.min() < -1.999
    assert 5.999 < values.max() <= 6.0
    assert values.mean() == pytest.approx(2.0, abs=0.03)
    assert values.std() == pytest.approx(8 / math.sqrt(12), rel=0.01)


def test_normal_has_the_moments_and_tails_of_the_bell_curve():
    values = block(Normal(3.0, 2.0), 100_000)
    standard = (values - 3.0) / 2.0

    assert standard.mean() == pytest.approx(0.0, abs=0.01)
    assert standard.std() == pytest.approx(1.0, rel=0.01)
    assert (standard**4).mean() == pytest.approx(3.0, rel=0.05)
    assert (abs(standard) > 1.959964).mean() == pytest.approx(0.05, rel=0.05)
    assert (standard > 0).mean() == pytest.approx(0.5, rel=0.01)


def test_columns_seeds_and_ids_are_independent():
    table = rows(Normal(), np.arange(20_000), 4)
    other_seed = rows(Normal(), np.arange(20_000), 4, seed=8)

    correlations = np.corrcoef(np.concatenate([table, other_seed, table[::-1]], axis=1).T)

    assert abs(correlations - np.eye(12)).max() < 0.04
