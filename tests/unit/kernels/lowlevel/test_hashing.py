"""Hashes are part of the checkpoint format: their values may never change."""

from __future__ import annotations

import numpy as np
import pytest

from psrt.kernels.lowlevel import hashing
from tests.support import twins

EXTREMES = np.array([0, 1, -1, 2**63 - 1, -(2**63), 42], np.int64)


def shards(ids, n_shards):
    out = np.empty(len(ids), np.int32)
    hashing.virtual_shards(ids, n_shards, out)
    return out


def test_mix64_gives_the_published_splitmix64_sequence():
    """First outputs of SplitMix64 seeded with 1234567 (Rosetta Code, "Pseudo-random numbers")."""
    golden = 0x9E3779B97F4A7C15
    states = np.array([(1234567 + k * golden) % 2**64 for k in (1, 2, 3)], np.uint64)

    outputs = twins.mix64(states)

    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert outputs.tolist() == expected
    assert [int(hashing.mix64(state)) for state in states] == expected


@pytest.mark.parametrize("n_shards", [1, 3, 1024, 2**20])
def test_virtual_shards_equal_their_twin(n_shards):
    ids = np.concatenate([EXTREMES, np.random.default_rng(0).integers(-(2**63), 2**63 - 1, 1000)])

    np.testing.assert_array_equal(shards(ids, n_shards), twins.virtual_shards(ids, n_shards))


def test_virtual_shards_of_known_ids_never_change():
    assert shards(EXTREMES, 1024).tolist() == [0, 346, 723, 361, 151, 669]


def test_virtual_shards_of_no_ids_are_none():
    assert shards(EXTREMES[:0], 1024).tolist() == []


def test_consecutive_ids_spread_evenly_over_shards():
    counts = np.bincount(shards(np.arange(102_400), 1024), minlength=1024)

    assert counts.min() > 50
    assert counts.max() < 160


def test_stable_hash_of_known_names_never_changes():
    assert hashing.stable_hash("") == 0
    assert hashing.stable_hash("123456789") == 0xCBF43926
    assert hashing.stable_hash("größe") == hashing.stable_hash("gr\u00f6\u00dfe")
