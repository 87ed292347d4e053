"""Sparse gradients of all processes: two calls a step, whatever the number of tables.

The first one gathers how many ids each process has for each table, the second one ids and values
in one array, filled up to the largest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from psrt.collective.group import TrainerGroup
from psrt.core.extras import required
from psrt.core.tensors import SelectedRows
from psrt.core.types import F32, I32, I64, Array

_ID_WORDS = 2  # an int64 in words of 32 bits


class RowExchange:
    """The sparse gradients of tables, by name with their widths."""

    def __init__(self, group: TrainerGroup, widths: Mapping[str, int]) -> None:
        self._group, self._widths = group, dict(sorted(widths.items()))
        self._torch = required("torch", "torch", "mode collective")
        self.sent_bytes = 0

    def gather(self, gradients: Mapping[str, SelectedRows]) -> dict[str, SelectedRows]:
        """Return the gradients of all processes, one behind the other in order of rank.

        A table that nobody has a gradient for is left out. Ids may occur once for each process.
        """
        if not self._widths:
            return {}
        own = [gradients.get(name) for name in self._widths]
        counts = self._gathered(np.array([_length(each) for each in own], np.int64))
        words = [_ID_WORDS + width for width in self._widths.values()]
        most = int((counts @ words).max())
        if most == 0:
            return {}
        packed = np.zeros(most, np.int32)
        _pack(packed, [each for each in own if each is not None])
        self.sent_bytes = packed.nbytes + 8 * len(own)
        return self._unpacked(self._gathered(packed), counts)

    def _gathered(self, values: Array) -> Array:
        """The arrays (n,) of all processes, (size, n)."""
        tensor: Any = self._torch.from_numpy(values)
        if self._group.seat.device >= 0:
            tensor = tensor.to(self._torch.device("cuda", self._group.seat.device))
        into = tensor.new_empty(self._group.size * len(values))
        self._group.all_gather(into, tensor)
        found: Array = into.cpu().numpy().reshape(self._group.size, -1)
        return found

    def _unpacked(self, packed: Array, counts: I64) -> dict[str, SelectedRows]:
        found: dict[str, SelectedRows] = {}
        at = np.zeros(self._group.size, np.int64)
        for table, (name, width) in enumerate(self._widths.items()):
            parts = [
                _part(packed[rank], int(at[rank]), int(counts[rank, table]), width)
                for rank in range(self._group.size)
            ]
            at += counts[:, table] * (_ID_WORDS + width)
            if counts[:, table].any():
                ids = np.concatenate([ids for ids, _ in parts])
                values = np.concatenate([values for _, values in parts])
                found[name] = SelectedRows(ids, values, 0)
        return found


def _length(gradient: SelectedRows | None) -> int:
    return 0 if gradient is None else len(gradient.ids)


def _pack(out: I32, gradients: Sequence[SelectedRows]) -> None:
    at = 0
    for each in gradients:
        for array in (each.ids, each.values):
            part = np.ascontiguousarray(array).reshape(-1).view(np.int32)
            out[at : at + len(part)] = part
            at += len(part)


def _part(packed: I32, at: int, count: int, width: int) -> tuple[I64, F32]:
    """The ids (n,) and values (n, width) that begin at `at`."""
    behind = at + _ID_WORDS * count
    ids = packed[at:behind].copy().view(np.int64)
    values = packed[behind : behind + count * width].view(np.float32)
    return ids, values.reshape(count, width)


__all__ = ["RowExchange"]
