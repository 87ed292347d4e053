"""Records against lists of Python: packed, joined, gathered, chosen."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest

from psrt.core.tensors import Ragged
from psrt.data.datasets.packing import Packer
from psrt.data.datasets.records import Layout, Records, SlotExchange, joined
from psrt.data.slots import Batch, Slot

Row = dict[str, list[float]]

LAYOUTS = {
    "dense": [Slot("label", "float", 1), Slot("x", "float", 3), Slot("id", "uint64", 2)],
    "ragged": [
        Slot("ids", "uint64"),
        Slot("label", "float", 1),
        Slot("x", "float"),
        Slot("a", "uint64", 1),
    ],
    "one ragged": [Slot("ids", "uint64")],
    "floats": [Slot("x", "float", 1), Slot("y", "float")],
}


def rows_of(slots: list[Slot], count: int, seed: int = 0, longest: int = 4) -> list[Row]:
    draw = np.random.default_rng(seed)

    def values(slot: Slot) -> list[float]:
        size = draw.integers(0, longest + 1) if slot.size is None else slot.size
        if slot.dtype == "uint64":
            return draw.integers(-(1 << 63), 1 << 62, size).tolist()
        return draw.normal(size=size).astype("f4").tolist()

    return [{slot.name: values(slot) for slot in slots} for _ in range(count)]


def batch_of(slots: list[Slot], rows: list[Row]) -> Batch:
    batch: Batch = {}
    for slot in slots:
        dtype = "int64" if slot.dtype == "uint64" else "float32"
        lists = [row[slot.name] for row in rows]
        if slot.size is None:
            batch[slot.name] = Ragged.of(lists, dtype)
        else:
            batch[slot.name] = np.array(lists, dtype).reshape(len(rows), slot.size)
    return batch


def lists_of(batch: Batch) -> list[Row]:
    """The rows of a batch, one by one."""
    columns: dict[str, list[list[float]]] = {}
    for name, fed in batch.items():
        if isinstance(fed, Ragged):
            columns[name] = [part.tolist() for part in np.split(fed.values, fed.offsets[1:-1])]
        else:
            columns[name] = fed.tolist()
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def records_of(slots: list[Slot], *parts: list[Row]) -> Records:
    layout = Layout(slots)
    packer = Packer(layout)
    return joined(layout, deque(packer.pack(batch_of(slots, rows)) for rows in parts))


@pytest.fixture(params=LAYOUTS)
def slots(request) -> list[Slot]:
    return LAYOUTS[request.param]


def test_a_batch_has_the_chosen_records_in_their_order(slots):
    rows = rows_of(slots, 300)
    records = records_of(slots, rows[:1], rows[1:130], rows[130:])
    chosen = np.random.default_rng(1).permutation(300)[:200]

    assert lists_of(records.batch(chosen)) == [rows[i] for i in chosen]
    assert lists_of(records.batch(np.arange(300))) == rows


def test_batches_have_the_dtypes_and_shapes_of_parsers(slots):
    records = records_of(slots, rows_of(slots, 5))

    batch = records.batch(np.array([3, 0]))

    assert list(batch) == [slot.name for slot in slots]
    for slot in slots:
        fed = batch[slot.name]
        values = fed.values if isinstance(fed, Ragged) else fed
        assert values.dtype == ("int64" if slot.dtype == "uint64" else "float32")
        assert slot.size is None or values.shape == (2, slot.size)


def test_taken_records_are_those_alone(slots):
    rows = rows_of(slots, 90)
    records = records_of(slots, rows)
    chosen = np.array([89, 0, 7, 7, 31])

    taken = records.take(chosen)

    assert lists_of(taken.batch(np.arange(5))) == [rows[i] for i in chosen]
    assert len(records.take(chosen[:0])) == 0


def test_exchanged_slots_are_those_of_other_records(slots):
    rows = rows_of(slots, 40)
    records = records_of(slots, rows)
    order = np.random.default_rng(2).permutation(40)
    name = slots[0].name
    chosen = np.array([4, 39, 0])

    batch = records.batch(chosen, SlotExchange(frozenset({name}), order))

    expected = [{**rows[i], name: rows[order[i]][name]} for i in chosen]
    assert lists_of(batch) == expected


@pytest.mark.parametrize("longest", [255, 256, 65_535, 65_536])
def test_long_lists_take_wider_counts(longest):
    slots = [Slot("ids", "uint64"), Slot("more", "uint64")]
    short = rows_of(slots, 3)
    long = [{"ids": list(range(longest)), "more": [7]}]

    records = records_of(slots, short, long)

    assert records.counts.shape[2] == (1 if longest < 1 << 8 else 2 if longest < 1 << 16 else 4)
    assert lists_of(records.batch(np.array([3, 1, 2, 0]))) == [*long, short[1], short[2], short[0]]


def test_bytes_of_a_record_are_as_documented():
    dense = records_of(LAYOUTS["dense"], rows_of(LAYOUTS["dense"], 10))
    ragged = records_of(LAYOUTS["ragged"], rows_of(LAYOUTS["ragged"], 10))

    values = sum(fed.nbytes for fed in dense.batch(np.arange(10)).values())
    assert dense.memory_bytes == values == 10 * (4 + 12 + 16)
    fields = ragged.batch(np.arange(10)).values()
    values = sum((fed.values if isinstance(fed, Ragged) else fed).nbytes for fed in fields)
    assert ragged.memory_bytes == values + 10 * (8 + 2) + 8


def test_no_records_are_no_records(slots):
    none = joined(Layout(slots), deque())

    assert (len(none), none.memory_bytes <= 8) == (0, True)


def test_arrays_in_any_order_of_memory_are_packed():
    slots = [Slot("x", "float", 2), Slot("id", "uint64", 1)]
    x = np.asfortranarray(np.arange(6, dtype="f4").reshape(3, 2))
    layout = Layout(slots)

    records = Packer(layout).pack({"x": x, "id": np.arange(6)[::2].reshape(3, 1)})

    batch = records.batch(np.arange(3))
    np.testing.assert_array_equal(batch["x"], x)
    np.testing.assert_array_equal(batch["id"], [[0], [2], [4]])
