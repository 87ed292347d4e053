"""Records with one ins_id, merged into one.

Ragged slots are concatenated in the order of the records; dense slots must be equal in all. Ids are
grouped by a 64-bit hash, then compared: two ids with one hash raise an error.
"""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass

import numpy as np

from psrt.core.errors import DataError
from psrt.core.tensors import Ragged
from psrt.core.types import I64, U8, Array
from psrt.data.datasets.packing import Packer
from psrt.data.datasets.prefixes import INS_ID
from psrt.data.datasets.records import Records, joined, taken
from psrt.data.slots import Batch, ends_of
from psrt.kernels.tables import CellBuffer, unique
from psrt.kernels.text import hash_words

log = logging.getLogger(__name__)

_GROUPS_AT_ONCE = 4096


def merged(records: Records, size: int) -> Records:
    """Return one record for each ins_id that `size` records have; any number if `size` is 0.

    Other records are left out, with a warning that counts them. Order and content are those of the
    first record of each id. Raises `DataError` if the dense slots of an id differ.
    """
    if not len(records):
        return records  # without texts, if no trainer sent any
    groups = _groups(records.texts[INS_ID])
    sizes = np.diff(groups.starts)
    kept = np.flatnonzero(sizes == size if size else sizes > 0)
    if left_out := len(records) - int(sizes[kept].sum()):
        log.warning(
            "%d of %d records were left out: set_merge_by_lineid wants %d of an ins_id",
            *(left_out, len(records), size),
        )
    packer = Packer(records.layout, tuple(records.texts))
    parts = (kept[at : at + _GROUPS_AT_ONCE] for at in range(0, len(kept), _GROUPS_AT_ONCE))
    pieces = deque(packer.pack(_one_each(records, groups, numbers)) for numbers in parts)
    return joined(records.layout, pieces)


@dataclass(frozen=True)
class _Groups:
    """Group g is the records `rows[starts[g] : starts[g + 1]]`, in their order."""

    rows: I64
    starts: I64

    def of(self, numbers: I64) -> _Groups:
        """Return the groups `numbers` only."""
        starts = ends_of(np.diff(self.starts)[numbers])
        shift = np.repeat(self.starts[numbers] - starts[:-1], np.diff(starts))
        return _Groups(self.rows[np.arange(starts[-1]) + shift], starts)


def _groups(ids: Ragged) -> _Groups:
    words: U8 = np.ascontiguousarray(ids.values, np.uint8)
    hashes = np.empty(ids.batch_size, np.int64)
    hash_words(words, ids.offsets, hashes)
    found, group = unique(hashes, CellBuffer())
    starts = ends_of(np.bincount(group, minlength=len(found)))
    groups = _Groups(np.argsort(group, kind="stable"), starts)
    _check_equal(ids, groups)
    return groups


def _check_equal(ids: Ragged, groups: _Groups) -> None:
    heads = np.repeat(groups.rows[groups.starts[:-1]], np.diff(groups.starts))
    lengths = np.diff(ids.offsets)
    same = np.array_equal(lengths[groups.rows], lengths[heads])
    if not (same and np.array_equal(taken(ids, groups.rows).values, taken(ids, heads).values)):
        raise DataError(
            "two different ins_ids have the same hash of 64 bits; nothing was merged.",
            hint="Change one of them, or the way ids are made.",
        )


def _one_each(records: Records, groups: _Groups, numbers: I64) -> Batch:
    """Return a batch with one example for each of the groups `numbers`."""
    groups = groups.of(numbers)
    heads = groups.rows[groups.starts[:-1]]
    names = taken(records.texts[INS_ID], heads)
    batch: Batch = {name: taken(text, heads) for name, text in records.texts.items()}
    for slot, fed in records.batch(groups.rows).items():
        if isinstance(fed, Ragged):
            batch[slot] = Ragged(fed.values, fed.offsets[groups.starts])
        else:
            batch[slot] = _agreed(slot, fed, groups.starts, names)
    return batch


def _agreed(slot: str, fed: Array, starts: I64, names: Ragged) -> Array:
    first = fed[starts[:-1]]
    differ = (fed != np.repeat(first, np.diff(starts), axis=0)).any(axis=1)
    if differ.any():
        group = int(np.searchsorted(starts, differ.argmax(), side="right")) - 1
        name = taken(names, np.array([group])).values.tobytes().decode("utf-8", "backslashreplace")
        raise DataError(
            f"slot {slot!r} differs between the records of ins_id {name!r}; nothing was merged.",
            hint="Only ragged slots are concatenated; a dense slot must be equal in all records.",
        )
    return first
