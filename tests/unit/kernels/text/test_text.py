"""Numbers in text, against Python's own `float`, `int` and `str`."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from psrt.data.formats.multislot import BatchParser
from psrt.data.slots import Slot
from psrt.kernels.text import criteo, lines

U64 = 1 << 64


def parse(slot: Slot, tokens: list[str]) -> np.ndarray:
    line = f"{len(tokens)} {' '.join(tokens)}\n".encode()
    [batch] = BatchParser([slot], 1).feed(np.frombuffer(line, np.uint8))
    return batch[slot.name].values


def floats(tokens: list[str]) -> np.ndarray:
    return parse(Slot("x", "float"), tokens)


def ids(tokens: list[str]) -> list[int]:
    return parse(Slot("x", "uint64"), tokens).tolist()


def nearest(tokens: list[str]) -> np.ndarray:
    return np.array([float(token) for token in tokens]).astype(np.float32)


def assert_same_bits(tokens: list[str]) -> None:
    got, wanted = floats(tokens), nearest(tokens)
    different = np.flatnonzero(got.view(np.uint32) != wanted.view(np.uint32))
    assert [(tokens[i], got[i], wanted[i]) for i in different[:5]] == []


def random_doubles(count: int, seed: int) -> np.ndarray:
    """Any bit pattern of float64 that stays within float32's range."""
    bits = np.random.default_rng(seed).integers(0, U64, count, dtype=np.uint64, endpoint=False)
    values = bits.view(np.float64)
    return values[np.isfinite(values) & (np.abs(values) < 3e38)]


@pytest.mark.parametrize("form", ["{!r}", "{:.6g}", "{:.9g}", "{:.17g}", "{:.25e}", "{:.3E}"])
def test_floats_of_any_magnitude_are_the_nearest_float32(form):
    assert_same_bits([form.format(value) for value in random_doubles(20_000, 1).tolist()])


@pytest.mark.parametrize("form", ["{!r}", "{:.6f}", "{:.20f}", "{:+.2f}", "{:.40f}"])
def test_floats_of_everyday_size_are_the_nearest_float32(form):
    values = np.random.default_rng(2).normal(0, 1000, 20_000)

    assert_same_bits([form.format(value) for value in values.tolist()])


def test_random_digit_strings_are_the_nearest_float32():
    random = np.random.default_rng(3)
    digits = ["".join(map(str, random.integers(0, 10, n))) for n in random.integers(1, 40, 20_000)]
    places = [int(random.integers(0, len(text) + 1)) for text in digits]
    powers = random.integers(-60, 0, len(digits)).tolist()

    assert_same_bits(
        [f"{d[:p]}.{d[p:]}e{x}" for d, p, x in zip(digits, places, powers, strict=True)]
    )


def test_the_middle_between_two_float32_is_settled_by_the_last_digit():
    random = np.random.default_rng(4)
    low = random.integers(0x00800000, 0x7E000000, 2000, dtype=np.uint32).view(np.float32)
    middles = (low.astype(np.float64) + np.nextafter(low, np.float32(np.inf))) / 2
    exact = [f"{value:.60e}" for value in middles.tolist()]
    above = [text.replace("e", "0000001e") for text in exact]
    below = [f"{value:.40e}" for value in np.nextafter(middles, 0).tolist()]

    assert_same_bits(exact + above + below)


def test_edges_of_the_float32_range():
    zeros = "0 -0 -0.0e5 0e999999 1e-400 1e-99999999999 7e-46"
    smallest = "7.1e-46 1e-45 1.17549435e-38 0.00000000000000000000000000000000000001"
    largest = "3.4028235e38 -3.4028234663852886e38 340282350000000000000000000000000000000"
    odd = "5. .5 +1.5E+3 1e0000000000001 00000000000000000000012 123456789123456789123456789"

    assert_same_bits(f"{zeros} {smallest} {largest} {odd}".split())


def test_an_exponent_may_undo_a_very_long_fraction():
    zeros = "0" * 200_000

    assert_same_bits([f"0.{zeros}1e200001", f"1{zeros}e-200000", f"{zeros}7", f"0.5{zeros}1"])


@pytest.mark.parametrize("value", [0, 9, 10, 2**31, 2**53 + 1, 2**63 - 1, 2**63, U64 - 1])
def test_ids_keep_all_64_bits(value):
    [pattern] = ids([str(value)])

    assert pattern % U64 == value


def test_negative_ids_are_their_own_bit_pattern():
    assert ids(["-1", "-9223372036854775808", "-0"]) == [-1, -(2**63), 0]


def test_leading_zeros_do_not_count_as_digits():
    assert ids(["00000000000000000000000018446744073709551615"]) == [-1]


def test_random_ids_of_every_length():
    random = np.random.default_rng(5)
    shifts = random.integers(0, 64, 20_000, dtype=np.uint64)
    values = random.integers(0, U64, 20_000, dtype=np.uint64, endpoint=False) >> shifts

    assert ids([str(value) for value in values.tolist()]) == values.view(np.int64).tolist()


def test_formatted_rows_are_what_python_would_write():
    labels = np.array([0, 1], np.uint8)
    dense = np.array([[0, -1.5, 12345.0], [0.000001, 0.1, -7e-8]], np.float32)
    slots = np.array([[0, -1], [2**63 - 1, 10]], np.int64)
    out, ends = np.zeros(2 * lines.row_bytes(3, 2), np.uint8), np.zeros(2, np.int64)

    lines.format_rows(labels, dense, slots, out, ends)

    assert bytes(out[: ends[1]]).decode().splitlines() == [
        "1 0 3 0 -1.5 12345 1 0 1 18446744073709551615",
        "1 1 3 0.000001 0.1 0 1 9223372036854775807 1 10",
    ]


def test_the_id_of_a_category_is_the_published_hash():
    fields = ["1"] + ["5"] * 13 + ["68fd1e64", ""] + ["05db9164"] * 24
    text = np.frombuffer("\t".join(fields).encode() + b"\n", np.uint8)
    labels, integers = np.zeros(1, np.uint8), np.zeros((1, 13), np.int64)
    found, draws = np.zeros((1, 26), np.int64), np.zeros(1)
    report = np.zeros(criteo.REPORT_CELLS, np.int64)

    criteo.parse_criteo_rows(text, len(text), labels, integers, found, draws, 0, report)

    wanted = [id_of(slot, fields[13 + slot]) for slot in range(1, 27)]
    assert found[0].tolist() == wanted
    assert len(set(wanted)) == 26


def id_of(slot: int, text: str) -> int:
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % U64
    return mix64(value ^ mix64(slot)) >> 1


def mix64(x: int) -> int:
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % U64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % U64
    return x ^ (x >> 31)


def test_integer_buckets_keep_small_values_apart_and_gaps_to_themselves():
    values = [criteo.MISSING, -2, -1, 0, 1, 2, 3, 4, 1000, 1001, 2**40]
    buckets = np.zeros((len(values), 1), np.int64)

    criteo.bucket_integers(np.array(values, np.int64)[:, None], 27, buckets)

    by_value = dict(zip(values, buckets[:, 0].tolist(), strict=True))
    assert by_value[3] == by_value[4]
    assert by_value[1000] == by_value[1001]
    assert len(set(by_value.values())) == len(values) - 2


def test_float32_patterns_survive_text_at_nine_digits():
    patterns = np.random.default_rng(6).integers(0, 0x7F000000, 5000, dtype=np.uint32)
    values = patterns.view(np.float32)

    got = floats([f"{value:.9g}" for value in values.tolist()])

    assert struct.pack("5000f", *got) == values.tobytes()
