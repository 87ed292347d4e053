"""Rows of saved tables as arrays by column, in place of the raw rows that a slab holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from psrt.core.types import F32, I32, I64, U16
from psrt.kernels.optimizers import UPDATES_WORD, VERSION_WORD
from psrt.kernels.tables import RowLayout
from psrt.pserver.frozen import ids_of

BFLOAT16, FLOAT16 = "bfloat16", "float16"


@dataclass(frozen=True)
class RowPart:
    """Rows (n,) of a table, or of one part of a table that grows.

    `ids` (n,) int64, `weights` (n, columns) float32, `state` (n, words) float32: optimizer state,
    no words if the source has none. `version` and `updates` (n,) int32 are those of the header,
    `seen` (n,) int32 are hours since 1970, `shows` and `clicks` (n,) float32; None where the source
    does not store them.
    """

    ids: I64
    weights: F32
    state: F32
    version: I32 | None = None
    updates: I32 | None = None
    seen: I32 | None = None
    shows: F32 | None = None
    clicks: F32 | None = None

    @property
    def counters(self) -> dict[str, I32 | F32]:
        """The counters that the source stores, by name."""
        names = ("version", "updates", "seen", "shows", "clicks")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    @property
    def size_bytes(self) -> int:
        return int(self.ids.nbytes + self.weights.nbytes + self.state.nbytes)


@dataclass(frozen=True)
class SavedRows:
    """Some rows of a saved table. `long` has the weights that follow those of `rows`, for the ids
    whose rows have grown; None in tables that do not grow."""

    rows: RowPart
    long: RowPart | None = None

    @property
    def size_bytes(self) -> int:
        return self.rows.size_bytes + (self.long.size_bytes if self.long is not None else 0)

    def grown(self) -> I64:
        """The places (m,) in `rows` of the ids of `long`, which are those of rows that exist."""
        assert self.long is not None
        return np.searchsorted(self.rows.ids, self.long.ids)

    def weights(self, width: int) -> F32:
        """Weights (n, width) of all rows; zeros where a row has not grown."""
        if self.long is None:
            return self.rows.weights
        whole = np.zeros((len(self.rows.ids), width), np.float32)
        short = self.rows.weights.shape[1]
        whole[:, :short] = self.rows.weights
        whole[self.grown(), short:] = self.long.weights
        return whole


def decoded(raw: F32, layout: RowLayout, state_words: int) -> RowPart:
    """Raw rows (n, words) as a slab of this layout has them; a row has `state_words` of state."""
    words: I32 = raw.view(np.int32)
    state = raw[:, layout.state_at : layout.state_at + state_words]
    return RowPart(
        ids_of(raw),
        _weights(raw, layout),
        np.ascontiguousarray(state),
        version=words[:, VERSION_WORD].copy(),
        updates=words[:, UPDATES_WORD].copy(),
        seen=None if layout.seen_at < 0 else words[:, layout.seen_at].copy(),
        shows=None if layout.show_at < 0 else raw[:, layout.show_at].copy(),
        clicks=None if layout.click_at < 0 else raw[:, layout.click_at].copy(),
    )


def layout_of(facts: Mapping[str, Any]) -> RowLayout:
    """The layout that the facts of a freeze have."""
    return RowLayout(**facts["layout"])


def _weights(raw: F32, layout: RowLayout) -> F32:
    at, width = layout.weights_at, layout.width
    if not layout.is_half:
        return np.ascontiguousarray(raw[:, at : at + width])
    halves: U16 = raw.view(np.uint16)[:, 2 * at : 2 * at + width]
    if layout.storage == FLOAT16:
        return halves.copy().view(np.float16).astype(np.float32)
    return (halves.astype(np.uint32) << np.uint32(16)).view(np.float32)
