"""MultiSlot lines to batches: what is accepted, how it is cut, what is refused and why."""

from __future__ import annotations

import numpy as np
import pytest

from psrt.core.errors import ConfigError, DataError
from psrt.data.formats.multislot import BatchParser
from psrt.data.slots import Batch, Slot

SLOTS = [Slot("click", "float", 1), Slot("dense", "float", 2), Slot("words", "uint64")]


def batches(text: str, slots: list[Slot] = SLOTS, batch_size: int = 2) -> list[Batch]:
    parser = BatchParser(slots, batch_size)
    parser.begin_file("part.txt")
    found = list(parser.feed(np.frombuffer(text.encode(), np.uint8)))
    last = parser.finish()
    return found + ([last] if last else [])


def refusal(text: str, slots: list[Slot] = SLOTS) -> str:
    with pytest.raises(DataError) as refused:
        batches(text, slots)
    return refused.value.message


def test_a_line_fills_dense_slots_and_ragged_slots():
    [batch] = batches("1 0 2 0.5 -1 3 7 8 9\n1 1 2 2e2 3 1 18446744073709551615\n")

    np.testing.assert_array_equal(batch["click"], np.array([[0], [1]], np.float32))
    np.testing.assert_array_equal(batch["dense"], np.array([[0.5, -1], [200, 3]], np.float32))
    np.testing.assert_array_equal(batch["words"].values, [7, 8, 9, -1])
    np.testing.assert_array_equal(batch["words"].offsets, [0, 3, 4])


def test_arrays_have_the_dtypes_the_executor_feeds():
    slots = [*SLOTS, Slot("id", "uint64", 1), Slot("weights", "float")]

    [batch] = batches("1 0 2 0 0 1 5 1 6 2 0.5 0.25\n", slots)

    assert batch["dense"].dtype == np.float32
    assert batch["words"].values.dtype == np.int64
    assert batch["words"].offsets.dtype == np.int64
    assert batch["id"].dtype == np.int64
    assert batch["weights"].values.dtype == np.float32


def test_the_last_batch_is_small():
    sizes = [len(batch["click"]) for batch in batches("1 0 2 0 0 0\n" * 5)]

    assert sizes == [2, 2, 1]


def test_a_batch_handed_out_is_not_written_again():
    first, second = batches("1 1 2 1 1 1 1\n" * 2 + "1 2 2 2 2 1 2\n" * 2)

    np.testing.assert_array_equal(first["words"].values, [1, 1])
    np.testing.assert_array_equal(first["click"], [[1], [1]])
    np.testing.assert_array_equal(second["words"].values, [2, 2])


def test_a_ragged_slot_may_be_empty():
    [batch] = batches("1 0 2 0 0 0\n1 0 2 0 0 1 4\n")

    np.testing.assert_array_equal(batch["words"].offsets, [0, 0, 1])


def test_ragged_slots_of_one_value_in_each_example_share_their_offsets():
    slots = [Slot("a", "uint64"), Slot("b", "uint64"), Slot("c", "uint64")]

    [batch] = batches("1 1 1 2 2 3 4\n1 5 1 6 1 7\n", slots)

    assert batch["a"].offsets is batch["b"].offsets
    np.testing.assert_array_equal(batch["a"].offsets, [0, 1, 2])
    np.testing.assert_array_equal(batch["c"].offsets, [0, 2, 3])


def test_ragged_slots_grow_to_any_length():
    words = list(range(1000))
    line = f"1 0 2 0 0 1000 {' '.join(map(str, words))}\n"

    [batch] = batches("1 0 2 0 0 1 5\n" + line)

    np.testing.assert_array_equal(batch["words"].values, [5, *words])
    np.testing.assert_array_equal(batch["words"].offsets, [0, 1, 1001])


@pytest.mark.parametrize(
    "text",
    [
        "1 0 2 0 0 1 4\r\n1 0 2 0 0 1 4\r\n",
        "1 0 2 0 0 1 4  \t \n1 0 2 0 0 1 4 \r\n",
        "\n1 0 2 0 0 1 4\n\n  \r\n1 0 2 0 0 1 4\n\n",
        "1  0\t2 0 0 1   4\n 1 0 2 0 0 1 4\n",
        "01 0 02 0 0 1 4\n1 0 2 0 0 1 4\n",
    ],
    ids=["crlf", "trailing blanks", "blank lines", "runs of blanks", "leading zeros"],
)
def test_harmless_spellings_mean_the_same(text):
    [batch] = batches(text)

    np.testing.assert_array_equal(batch["words"].values, [4, 4])
    np.testing.assert_array_equal(batch["words"].offsets, [0, 1, 2])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("1 0 2 0 0", "column 10, slot 'words': expected the number of values, found the end"),
        ("1 0 2 0 0 3 1 2", "slot 'words': expected a value as value 3 of 3, found the end"),
        ("1 0 2 0", "slot 'dense': expected a value as value 2 of 2, found the end of the line"),
        (
            "1 0 2 0 0 1 4 9",
            "behind the last slot 'words': expected the end of the line, found '9'",
        ),
        ("1 0 3 0 0 0 1 4", "slot 'dense': expected the number of values, which is 2, found '3'"),
        ("1 0 0 1 4", "slot 'dense': expected the number of values, which is 2, found '0'"),
        ("1 0 2 0 0 x 4", "slot 'words': expected the number of values, found 'x'"),
        ("1 0 2 0 0 1x 4", "slot 'words': expected the number of values, found '1x'"),
        ("1 0 2 0 0 -1 4", "slot 'words': expected the number of values, found '-1'"),
        ("1 0 2 0 0 999999999999 4", "expected a number of values that the rest of the line has"),
        ("1 0 2 0 0 18446744073709551617 4", "expected a number of values that the rest"),
        ("1 0 2 0 0 2 4 1.5", "expected an unsigned integer as value 2 of 2, found '1.5'"),
        ("1 0 2 0 0 1 -", "expected an unsigned integer as value 1 of 1, found '-'"),
        ("1 0 2 0 0 1 18446744073709551616", "expected an id of at most 64 bits as value 1 of 1"),
        ("1 0 2 0 0 1 99999999999999999999999", "expected an id of at most 64 bits"),
        ("1 0 2 0 0 1 -9223372036854775809", "expected an id of at most 64 bits"),
        ("1 0 2 0 abc 1 4", "slot 'dense': expected a finite number as value 2 of 2, found 'abc'"),
        ("1 nan 2 0 0 1 4", "slot 'click': expected a finite number as value 1 of 1, found 'nan'"),
        ("1 -inf 2 0 0 1 4", "expected a finite number as value 1 of 1, found '-inf'"),
        ("1 1e 2 0 0 1 4", "expected a finite number as value 1 of 1, found '1e'"),
        ("1 . 2 0 0 1 4", "expected a finite number as value 1 of 1, found '.'"),
        ("1 1.2.3 2 0 0 1 4", "expected a finite number as value 1 of 1, found '1.2.3'"),
        ("1 1_0 2 0 0 1 4", "expected a finite number as value 1 of 1, found '1_0'"),
        ("1 0x10 2 0 0 1 4", "expected a finite number as value 1 of 1, found '0x10'"),
        ("1 1e39 2 0 0 1 4", "expected a number within the range of float32 as value 1 of 1"),
        ("1 -4e38 2 0 0 1 4", "expected a number within the range of float32"),
        ("1 0 2 0 0 1 4\r5", "expected the end of the line"),
        ("1 0 2 0 0 1 \x00", "expected an unsigned integer"),
        ("1 0 2 0 0 1 é", "expected an unsigned integer as value 1 of 1, found 'é'"),
    ],
)
def test_a_malformed_line_is_refused_by_name(line, expected):
    message = refusal(f"1 0 2 0 0 1 4\n\n{line}\n1 0 2 0 0 1 4\n")

    assert message.startswith("part.txt, line 3, column ")
    assert expected in message


def test_a_value_missing_at_the_end_is_not_taken_from_the_next_line():
    assert "line 1, column 14, slot 'words'" in refusal("1 0 2 0 0 2 4\n5 0 2 0 0 1 4\n")


def test_batches_before_a_malformed_line_are_handed_out():
    parser = BatchParser(SLOTS, 1)
    stream = parser.feed(np.frombuffer(b"1 0 2 0 0 1 4\nbroken\n", np.uint8))

    first = next(stream)

    np.testing.assert_array_equal(first["words"].values, [4])
    with pytest.raises(DataError, match="line 2"):
        next(stream)


def test_lines_count_from_one_in_each_file():
    parser = BatchParser(SLOTS, 4)
    parser.begin_file("a.txt")
    list(parser.feed(np.frombuffer(b"1 0 2 0 0 1 4\n" * 3, np.uint8)))
    parser.begin_file("b.txt")

    with pytest.raises(DataError, match=r"b\.txt, line 2,"):
        list(parser.feed(np.frombuffer(b"1 0 2 0 0 1 4\noops\n", np.uint8)))


def test_a_refusal_tells_the_order_of_slots():
    with pytest.raises(DataError) as refused:
        batches("oops\n")

    assert "click (float × 1), dense (float × 2), words (uint64)" in refused.value.hint


def test_a_long_token_is_shown_in_part():
    assert len(refusal("1 0 2 0 0 1 " + "z" * 5000 + "\n")) < 250


@pytest.mark.parametrize(
    "make",
    [
        lambda: Slot("x", "int32"),
        lambda: Slot("x", "float", 0),
        lambda: BatchParser([], 1),
        lambda: BatchParser([Slot("x", "float"), Slot("x", "uint64")], 1),
        lambda: BatchParser(SLOTS, 0),
    ],
    ids=["dtype", "size", "no slots", "same name twice", "batch size"],
)
def test_impossible_slots_are_refused(make):
    with pytest.raises(ConfigError):
        make()
