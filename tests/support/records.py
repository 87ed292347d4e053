"""Records with and without ragged slots and texts, and what they hold as plain Python."""

from __future__ import annotations

from collections import deque
from itertools import pairwise

import numpy as np

from psrt.core.tensors import Ragged
from psrt.data.datasets.packing import Packer
from psrt.data.datasets.records import Layout, Records
from psrt.data.slots import Batch, Slot

RAGGED = (Slot("label", "float", 1), Slot("ids", "uint64"), Slot("more", "float"))
DENSE = (Slot("x", "float", 3), Slot("id", "uint64", 1))
TEXT = "ins_id"


def batch_of(slots: tuple[Slot, ...], rows: int, seed: int, texts: bool = False) -> Batch:
    """Examples that differ from each other, and from those of another seed."""
    rng = np.random.default_rng(seed)
    batch: Batch = {}
    for slot in slots:
        size = slot.size or 0
        counts = np.full(rows, size) if size else rng.integers(1, 5, rows)
        values = rng.integers(-(1 << 60), 1 << 60, counts.sum())
        filled = values if slot.dtype == "uint64" else rng.standard_normal(len(values), "f")
        offsets = np.concatenate([[0], np.cumsum(counts)])
        batch[slot.name] = filled.reshape(rows, size) if size else Ragged(filled, offsets)
    if texts:
        names = [list(f"line-{i % max(1, rows // 2)}".encode()) for i in range(rows)]
        lengths = [len(name) for name in names]
        flat = np.array([byte for name in names for byte in name], np.uint8)
        batch[TEXT] = Ragged(flat, np.concatenate([[0], np.cumsum(lengths)]))
    return batch


def pieces_of(layout: Layout, sizes: list[int], seed: int, texts: bool = False) -> deque[Records]:
    packer = Packer(layout, (TEXT,) if texts else ())
    return deque(
        packer.pack(batch_of(layout.slots, rows, seed * 1000 + i, texts))
        for i, rows in enumerate(sizes)
    )


def plain(records: Records) -> list[tuple[object, ...]]:
    """Each record as a tuple of values."""
    batch = records.batch(np.arange(len(records)))
    columns = [_rows(batch[slot.name]) for slot in records.layout.slots]
    columns += [_rows(text) for text in records.texts.values()]
    return list(zip(*columns, strict=True))


def _rows(fed: np.ndarray | Ragged) -> list[tuple[object, ...]]:
    if not isinstance(fed, Ragged):
        return [tuple(row) for row in fed.tolist()]
    values, ends = fed.values.tolist(), fed.offsets.tolist()
    return [tuple(values[a:b]) for a, b in pairwise(ends)]
