"""MultiSlot lines read straight into records, against the same lines through batches."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psrt.core.errors import DataError
from psrt.core.tensors import Ragged
from psrt.data.datasets import record_lines, records
from psrt.data.datasets.packing import Packer
from psrt.data.datasets.record_lines import RecordParser
from psrt.data.datasets.records import Layout, Records, joined
from psrt.data.formats.multislot import BatchParser
from psrt.data.slots import Slot

KINDS = st.tuples(st.sampled_from(["uint64", "float"]), st.sampled_from([None, 1, 1, 3]))
IDS = st.integers(0, 2**64 - 1) | st.integers(0, 10**9)
FLOATS = st.floats(-(2.0**100), 2.0**100, width=32) | st.decimals(-999, 999, places=4)
BLANKS = st.sampled_from([" ", " ", " ", "  ", "\t"])
ENDS = st.sampled_from(["\n", "\n", " \n", "\r\n", "\n\n"])
RAGGED = [Slot("id", "uint64"), Slot("x", "float", 1), Slot("y", "float")]


@st.composite
def texts(draw) -> tuple[list[Slot], str]:
    """Slots and lines of them, in any legal spelling."""
    kinds = draw(st.lists(KINDS, min_size=1, max_size=6))
    slots = [Slot(f"s{i}", dtype, size) for i, (dtype, size) in enumerate(kinds)]

    def line() -> str:
        words: list[str] = []
        for slot in slots:
            count = draw(st.integers(0, 3)) if slot.size is None else slot.size
            numbers = IDS if slot.dtype == "uint64" else FLOATS
            words += [str(count), *(str(draw(numbers)) for _ in range(count))]
        return "".join(word + draw(BLANKS) for word in words[:-1]) + words[-1] + draw(ENDS)

    return slots, "".join(line() for _ in range(draw(st.integers(1, 6))))


def array(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), np.uint8)


def read(slots: list[Slot], *blocks: str) -> Records:
    layout = Layout(slots)
    parser, pieces = RecordParser(layout), deque[Records]()
    parser.begin_file("f")
    for block in blocks:
        pieces += parser.feed(array(block))
    if last := parser.finish():
        pieces.append(last)
    return joined(layout, pieces)


def read_as_batches(slots: list[Slot], text: str) -> Records:
    parser, layout = BatchParser(slots, 2), Layout(slots)
    batches = [*parser.feed(array(text)), parser.finish()]
    packer = Packer(layout)
    return joined(layout, deque(packer.pack(batch) for batch in batches if batch))


def assert_same(records: Records, others: Records) -> None:
    np.testing.assert_array_equal(records.words, others.words)
    np.testing.assert_array_equal(records.starts, others.starts)
    np.testing.assert_array_equal(records.counts, others.counts)


@settings(max_examples=150)
@given(texts(), st.sampled_from(["", " " * 64 + "\n"]))
def test_records_are_those_of_batches_near_the_end_of_a_text_and_far_from_it(written, padding):
    slots, text = written

    assert_same(read(slots, text + padding), read_as_batches(slots, text))


@pytest.fixture
def small(monkeypatch) -> None:
    """Pieces of 4 records, in arenas of 40 bytes."""
    monkeypatch.setattr(record_lines, "_PIECE_RECORDS", 4)
    monkeypatch.setattr(records, "_ARENA_WORDS", 10)


@pytest.mark.parametrize("size", [None, 2], ids=["ragged", "dense"])
def test_pieces_and_arenas_that_fill_are_followed_by_others(small, size):
    slots = [Slot("id", "uint64", size), Slot("x", "float", 1)]
    lines = [f"2 {i} {i + 1} 1 {i}.5\n" for i in range(23)]

    records = read(slots, "".join(lines[:9]), "".join(lines[9:]))

    batch = records.batch(np.arange(23))
    found = batch["id"].values if isinstance(batch["id"], Ragged) else batch["id"].ravel()
    assert found.tolist() == [id for i in range(23) for id in (i, i + 1)]
    assert batch["x"].ravel().tolist() == [i + 0.5 for i in range(23)]


def test_a_record_larger_than_an_arena_gets_one_of_its_own(small):
    long = f"50 {' '.join(map(str, range(50)))} 1 1 0\n"

    records = read(RAGGED, "1 7 1 0 0\n" + long + "1 8 1 0 0\n")

    batch = records.batch(np.arange(3))
    assert batch["id"].values.tolist() == [7, *range(50), 8]


@pytest.mark.parametrize("count", [255, 256, 70_000])
def test_counts_take_as_many_bytes_as_the_longest_slot_needs(count):
    long = f"0 1 1 {count} {'1.5 ' * count}\n"

    records = read(RAGGED, "1 7 1 0 1 2\n" + long + "1 8 1 0 0\n")

    batch = records.batch(np.arange(3))
    assert np.diff(batch["y"].offsets).tolist() == [1, count, 0]
    assert records.counts.shape[2] == (1 if count < 256 else 2 if count < 65_536 else 4)


def test_numbers_between_two_floats_are_settled_by_python():
    lines = [f"0 1 {i}.00000005960464477539062500000001 0\n" for i in range(1, 200)]

    records = read(RAGGED, "".join(lines))

    wanted = [np.float32(float(line.split()[2])) for line in lines]
    np.testing.assert_array_equal(records.batch(np.arange(199))["x"].ravel(), wanted)


@pytest.mark.parametrize(
    "line", ["1 x 1 0 0\n", "1 1 1 1e99 0\n", "1 1 2 1 0\n", "9 1\n", "1 1 1 1 0 7\n", "1 1 1 1\n"]
)
@pytest.mark.parametrize("before", [0, 3])
def test_mistakes_are_told_in_the_same_words(line, before):
    text = "1 5 1 0.5 0\n" * before + line + "1 5 1 0.5 0\n" * 9
    batches = BatchParser(RAGGED, 2)
    batches.begin_file("f")

    with pytest.raises(DataError) as expected:
        list(batches.feed(array(text)))
    with pytest.raises(DataError) as found:
        read(RAGGED, text)

    assert str(found.value) == str(expected.value)
