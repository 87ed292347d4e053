"""A batch that was read ahead."""

from __future__ import annotations

from typing import Any, NamedTuple

from psrt.torch.rows_ahead import BatchLookups

LEAVE_TIMEOUT_S = 10.0
"""The longest wait for a thread that reads ahead, when a loop ends."""


class ReadBatch(NamedTuple):
    """A batch, its lookups, and where its loader goes on behind it."""

    batch: Any
    lookups: BatchLookups
    state: dict[str, Any]


__all__ = ["LEAVE_TIMEOUT_S", "ReadBatch"]
