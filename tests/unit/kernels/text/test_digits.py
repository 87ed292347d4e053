"""Short numbers, read eight characters at a time, against Python and a regular expression."""

from __future__ import annotations

import re

import numpy as np
import pytest

from psrt.core.errors import DataError
from psrt.data.formats.multislot import BatchParser
from psrt.data.slots import Slot

FLOAT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
ID = re.compile(r"-?\d+")
PADDING = {"far from the end": " 0" * 20, "at the end": ""}


def read(slot: Slot, token: str, padding: str) -> float | None:
    """The first of the values of a line, None if it is refused."""
    count = 1 + padding.count("0")
    line = f"{count} {token}{padding}\n".encode()
    try:
        [batch] = BatchParser([slot], 1).feed(np.frombuffer(line, np.uint8))
    except DataError:
        return None
    return batch[slot.name].values[0]


def float32(token: str) -> np.float32 | None:
    """None where it is out of range."""
    with np.errstate(over="ignore"):
        value = np.float32(float(token))
    return value if np.isfinite(value) else None


def strings(alphabet: str, longest: int, count: int) -> list[str]:
    draw = np.random.default_rng(longest)
    lengths = draw.integers(1, longest + 1, count)
    return ["".join(draw.choice(list(alphabet), length)) for length in lengths]


@pytest.mark.parametrize("padding", PADDING.values(), ids=PADDING)
@pytest.mark.parametrize("alphabet", ["0123456789.", "019.-+e", "0.9:/;é"])
def test_any_string_is_the_float_that_python_reads_or_refused(alphabet, padding):
    slot = Slot("x", "float")

    for token in strings(alphabet, 10, 1500):
        expected = float32(token) if FLOAT.fullmatch(token) else None
        assert read(slot, token, padding) == expected, token


@pytest.mark.parametrize("padding", PADDING.values(), ids=PADDING)
@pytest.mark.parametrize("alphabet", ["0123456789", "09-", "1:/a\x00"])
def test_any_string_is_the_id_that_python_reads_or_refused(alphabet, padding):
    slot = Slot("x", "uint64")

    for token in strings(alphabet, 18, 1500):
        expected = int(token) if ID.fullmatch(token) else None
        assert read(slot, token, padding) == expected, token


@pytest.mark.parametrize("digits", range(1, 21))
def test_ids_of_every_length_are_whole(digits):
    token = "98765432109876543210"[:digits] if digits < 20 else "18446744073709551615"

    pattern = read(Slot("x", "uint64"), token, PADDING["far from the end"])

    assert np.int64(pattern).view(np.uint64) == int(token)


@pytest.mark.parametrize("end", ["\r\n", " \n", "\t\n", "\n"])
def test_a_number_may_end_a_line_in_any_way(end):
    lines = f"1 1234567{end}1 12345678{end}1 0.123456{end}".encode() + b"1 0\n" * 8
    parser = BatchParser([Slot("x", "float", 1)], 11)

    [batch] = parser.feed(np.frombuffer(lines, np.uint8))

    expected = np.array([1234567, 12345678, 0.123456] + [0] * 8, "f4")
    np.testing.assert_array_equal(batch["x"][:, 0], expected)
