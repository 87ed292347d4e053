"""The parser against a plain-Python reader, on random layouts and on damaged text."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psrt.core.errors import DataError
from psrt.core.tensors import Ragged
from psrt.data.formats.multislot import BatchParser
from psrt.data.slots import Slot

KINDS = st.tuples(st.sampled_from(["uint64", "float"]), st.sampled_from([None, 1, 3]))
IDS = st.integers(0, 2**64 - 1)
FLOATS = st.floats(-(2.0**100), 2.0**100, width=32)
FLOAT32_OVERFLOW = 3.4028235677973366e38


@st.composite
def data_sets(draw):
    """(slots, rows): each row has one list of values per slot."""
    kinds = draw(st.lists(KINDS, min_size=1, max_size=5))
    slots = [Slot(f"s{i}", dtype, size) for i, (dtype, size) in enumerate(kinds)]

    def values(slot: Slot):
        low, high = (0, 6) if slot.size is None else (slot.size, slot.size)
        return st.lists(IDS if slot.dtype == "uint64" else FLOATS, min_size=low, max_size=high)

    return slots, draw(st.lists(st.tuples(*map(values, slots)), max_size=12))


def line_of(row) -> str:
    return " ".join(" ".join([str(len(values)), *map(repr, values)]) for values in row)


def read_by_python(slots, text: str):
    """Parse rows by `str.split`, `int` and `float`; raises ValueError for illegal text."""
    return [read_line(slots, line.split()) for line in text.split("\n") if line.split()]


def read_line(slots, tokens: list[str]):
    row = []
    for slot in slots:
        count = int(legal(r"\d+", tokens.pop(0))) if tokens else -1
        if count < 0 or count > len(tokens) or (slot.size or count) != count:
            raise ValueError(tokens)
        row.append([number(slot, tokens.pop(0)) for _ in range(count)])
    if tokens:
        raise ValueError(tokens)
    return tuple(row)


def number(slot, token: str):
    if slot.dtype == "float":
        value = float(token)
        if abs(value) >= FLOAT32_OVERFLOW:
            raise ValueError(token)
        return float(np.float32(value))
    if not -(2**63) <= int(legal(r"-?\d+", token)) < 2**64:
        raise ValueError(token)
    return int(token) % 2**64


def legal(pattern: str, token: str) -> str:
    """`int` takes more spellings than a MultiSlot file may hold."""
    if not re.fullmatch(pattern, token):
        raise ValueError(token)
    return token


def rows_of(slots, batches):
    """Batches as rows of lists, ids as unsigned numbers."""
    return [
        tuple(cell(slot, batch[slot.name], i) for slot in slots)
        for batch in batches
        for i in range(length(batch[slots[0].name]))
    ]


def length(values) -> int:
    return values.batch_size if isinstance(values, Ragged) else len(values)


def cell(slot, values, i: int):
    if isinstance(values, Ragged):
        part = values.values[values.offsets[i] : values.offsets[i + 1]]
    else:
        part = values[i]
    return [value % 2**64 if slot.dtype == "uint64" else value for value in part.tolist()]


def parse(slots, text: str, batch_size: int, cuts=()):
    """Feed the text in whole lines, split where `cuts` says."""
    parser = BatchParser(slots, batch_size)
    lines = text.splitlines(keepends=True)
    bounds = [0, *sorted(min(cut, len(lines)) for cut in cuts), len(lines)]
    batches = []
    for start, stop in itertools.pairwise(bounds):
        block = "".join(lines[start:stop]).encode()
        batches += parser.feed(np.frombuffer(block, np.uint8)) if block else []
    last = parser.finish()
    return batches + ([last] if last else [])


@settings(max_examples=60)
@given(data_sets(), st.integers(1, 5), st.lists(st.integers(0, 12), max_size=3))
def test_parsed_rows_are_the_written_rows_however_they_are_cut(data_set, batch_size, cuts):
    slots, rows = data_set
    text = "".join(line_of(row) + "\n" for row in rows)

    batches = parse(slots, text, batch_size, cuts)

    assert rows_of(slots, batches) == [tuple(map(list, row)) for row in rows]
    assert [length(b["s0"]) for b in batches[:-1]] == [batch_size] * len(batches[:-1])


@settings(max_examples=150)
@given(data_sets(), st.data())
def test_damaged_text_is_refused_or_means_what_python_reads(data_set, data):
    slots, rows = data_set
    text = "".join(line_of(row) + "\n" for row in rows)
    at = data.draw(st.integers(0, len(text)))
    removed = data.draw(st.integers(0, 3))
    added = data.draw(st.text(alphabet="0123456789.-+eE \nx", max_size=4))
    damaged = text[:at] + added + text[at + removed :] + "\n"

    try:
        wanted = read_by_python(slots, damaged)
    except ValueError:
        with pytest.raises(DataError):
            parse(slots, damaged, 3)
        return

    assert rows_of(slots, parse(slots, damaged, 3)) == wanted
