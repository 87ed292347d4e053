"""Places of ragged elements and the softmax over examples agree with loops over lists."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from psrt.kernels.ops import sequence

LENGTHS = [[], [0], [1], [3, 0, 1, 4], [0, 0]]


def offsets_of(lengths):
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
    offsets.flags.writeable = False
    return offsets


def numbers(count, seed=0):
    return (4 * np.random.default_rng(seed).standard_normal(count)).astype(np.float32)


def empty_places(count):
    return np.full(count, -7, np.int64)


@pytest.mark.parametrize("lengths", LENGTHS)
def test_owner_of_an_element_is_its_example(lengths):
    owner = empty_places(sum(lengths))

    sequence.owners(offsets_of(lengths), owner)

    assert owner.tolist() == [i for i, count in enumerate(lengths) for _ in range(count)]


@pytest.mark.parametrize("lengths", LENGTHS)
def test_reversed_places_turn_each_example_around(lengths):
    places, offsets = empty_places(sum(lengths)), offsets_of(lengths)

    sequence.reversed_places(offsets, places)

    expected = [p for a, b in itertools.pairwise(offsets) for p in reversed(range(a, b))]
    assert places.tolist() == expected


@pytest.mark.parametrize("lengths", LENGTHS)
def test_runs_start_where_they_are_told(lengths):
    places, starts = empty_places(sum(lengths)), np.arange(len(lengths)) * 100

    sequence.run_places(offsets_of(lengths), starts, places)

    assert places.tolist() == [100 * i + k for i, count in enumerate(lengths) for k in range(count)]


@pytest.mark.parametrize("width", [1, 3, 9])
@pytest.mark.parametrize("lengths", LENGTHS)
def test_padding_and_what_it_cuts(lengths, width):
    offsets, n = offsets_of(lengths), sum(lengths)
    places, is_cut = empty_places(n), np.zeros(n, np.bool_)
    sources, is_hole = empty_places(len(lengths) * width), np.zeros(len(lengths) * width, np.bool_)

    sequence.padded_places(offsets, width, places, is_cut)
    sequence.padded_sources(offsets, width, sources, is_hole)

    every = [(i, k) for i, count in enumerate(lengths) for k in range(count)]
    kept = [i * width + k for i, k in every if k < width]
    assert places[~is_cut].tolist() == kept
    assert is_cut.tolist() == [k >= width for _, k in every]
    assert np.flatnonzero(~is_hole).tolist() == kept
    assert sources[~is_hole].tolist() == [p for p, (_, k) in enumerate(every) if k < width]
    assert all(0 <= place < len(lengths) * width for place in places)


@pytest.mark.parametrize("lengths", LENGTHS)
def test_softmax_and_its_gradient_by_example(lengths):
    offsets, x, d = offsets_of(lengths), numbers(sum(lengths)), numbers(sum(lengths), 1)
    out, grad_x = np.empty_like(x), np.empty_like(x)

    sequence.below_maximum(x, offsets, out)
    np.exp(out, out=out)
    sequence.share_of_sum_(out, offsets)
    sequence.softmax_grad(out, d, offsets, grad_x)

    for start, stop in itertools.pairwise(offsets):
        powers = np.exp(x[start:stop].astype(np.float64))
        share = powers / powers.sum()
        expected = share * (d[start:stop] - (share * d[start:stop]).sum())
        np.testing.assert_allclose(out[start:stop], share, rtol=1e-5)
        np.testing.assert_allclose(grad_x[start:stop], expected, rtol=1e-3, atol=1e-6)


def test_softmax_of_large_numbers_does_not_overflow():
    out = np.empty(2, np.float32)

    sequence.below_maximum(np.array([1e38, -1e38], np.float32), np.array([0, 2]), out)

    assert out[0] == 0
    assert np.exp(out[1]) == 0
