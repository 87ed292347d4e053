"""Copies of records before they change, compared with plain numpy."""

from __future__ import annotations

import numpy as np
import pytest

from psrt.kernels.lowlevel.hashing import mix64, virtual_shards
from psrt.kernels.tables import admission, copy_on_write

WORDS = 6


def records_of(rng: np.random.Generator, count: int) -> np.ndarray:
    """Records, some of which are zero from word 2 on."""
    records = rng.standard_normal((count, WORDS)).astype(np.float32)
    records[rng.random(count) < 0.2, 2:] = 0.0
    return records


def bits_of(flags: np.ndarray) -> np.ndarray:
    return np.packbits(flags, bitorder="little")


def flags_of(bits: np.ndarray, count: int) -> np.ndarray:
    return np.unpackbits(bits, bitorder="little", count=count).astype(bool)


def copies_of(records: np.ndarray, numbers: np.ndarray, tested: int, base: int) -> np.ndarray:
    """Copies with their numbers in front, without those that are zero from word `tested` on."""
    full = numbers if tested == WORDS else numbers[records[numbers, tested:].any(axis=1)]
    front = (base + full.astype(np.int64)).view(np.float32).reshape(-1, 2)
    return np.concatenate([front, records[full]], axis=1)


def distinct(numbers: np.ndarray) -> np.ndarray:
    """The numbers in the order in which they come first."""
    return numbers[np.sort(np.unique(numbers, return_index=True)[1])]


@pytest.mark.parametrize("tested", [2, WORDS])
@pytest.mark.parametrize("seed", range(8))
def test_pending_records_are_saved_once(seed: int, tested: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 300))
    records, done = records_of(rng, count + 20), rng.random(count) < 0.3
    first, end = np.sort(rng.integers(0, count + 1, 2)).tolist()
    numbers = rng.integers(-3, count + 20, 200).astype(np.int32)
    bits, room, place, found = bits_of(done), int(rng.integers(1, 90)), 0, []
    while place < len(numbers):
        out, size = np.full((room, WORDS + 2), np.nan, np.float32), np.zeros(1, np.int64)
        place = copy_on_write.save_(
            records, numbers, place, first, end, bits, tested, 1 << 40, out, size
        )
        found.append(out[: size[0]])

    inside = distinct(numbers[(numbers >= first) & (numbers < end)])
    pending = inside[~done[inside]]
    expected = copies_of(records, pending, tested, 1 << 40)
    assert np.concatenate(found).tobytes() == expected.tobytes()
    done[pending] = True
    np.testing.assert_array_equal(flags_of(bits, count), done)


@pytest.mark.parametrize("tested", [2, WORDS])
@pytest.mark.parametrize("seed", range(8))
def test_a_walk_takes_all_records_without_their_bit_in_order(seed: int, tested: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 3000))
    records, done = records_of(rng, count), rng.random(count) < rng.choice([0.0, 0.5, 0.999])
    bits, position, taken = bits_of(done), np.zeros(1, np.int64), []
    while position[0] < count:
        out = np.empty((int(rng.integers(1, 200)), WORDS + 2), np.float32)
        size = copy_on_write.take_(records, position, count, bits, tested, 5, out)
        taken.append(out[:size])

    expected = copies_of(records, np.flatnonzero(~done), tested, 5)
    assert np.concatenate(taken).tobytes() == expected.tobytes()


def test_copies_without_a_number_are_the_records() -> None:
    records, out = records_of(np.random.default_rng(1), 40), np.empty((40, WORDS), np.float32)

    position, bits = np.zeros(1, np.int64), np.zeros(5, np.uint8)
    size = copy_on_write.take_(records, position, 40, bits, WORDS, 0, out)

    assert size == 40
    assert out.tobytes() == records.tobytes()


def test_marks_are_the_bits_of_their_numbers() -> None:
    rng, bits = np.random.default_rng(3), np.zeros(100, np.uint8)
    numbers = rng.integers(-50, 800, 300).astype(np.int32)

    copy_on_write.mark_(bits, numbers)

    np.testing.assert_array_equal(
        np.flatnonzero(flags_of(bits, 800)), np.unique(numbers[numbers >= 0])
    )


def test_buckets_are_those_of_ids_without_a_row() -> None:
    rng, shards, buckets = np.random.default_rng(4), 64, 5
    ids = rng.integers(-(2**63), 2**63 - 1, 500, np.int64)
    order = rng.permutation(500)[:300].astype(np.int32)
    found = rng.integers(-4, 4, 300).astype(np.int32)
    out, shard = np.empty(300, np.int32), np.empty(500, np.int32)

    count = admission.find_buckets(ids, order, found, out, 3, shards, buckets)

    virtual_shards(ids, shards, shard)
    asked = order[found < 0]
    low = np.array(
        [int(mix64(np.uint64(each))) & 0xFFFFFFFF for each in ids[asked].view(np.uint64)]
    )
    expected = (shard[asked] - 3) * buckets + (low * buckets >> 32)
    np.testing.assert_array_equal(out[:count], expected)
