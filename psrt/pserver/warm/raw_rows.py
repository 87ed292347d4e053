"""Saved rows in the layout of another table: another width, storage or optimizer."""

from __future__ import annotations

import numpy as np

from psrt.core.types import F32, I64
from psrt.kernels.optimizers import UPDATES_WORD, VERSION_WORD, rule_of
from psrt.kernels.precision import halves
from psrt.kernels.tables import ID_WORD, RowLayout, fill_rows
from psrt.pserver.saved import RowPart
from psrt.pserver.tables import SparseTable

_ONE_SHOW = 1.0


def raw_rows(
    part: SparseTable, ids: I64, weights: F32, saved: RowPart, keeps_state: bool, hour: int
) -> F32:
    """Rows (n, words) of `part` for `ids` (n,) with the first columns of `weights` (n, columns).

    Further columns take the initial values of the table. `saved` has counters and, if
    `keeps_state`, state for these ids. Rows without counters in the source were seen at `hour`,
    once.
    """
    layout = part.layout
    raw = np.zeros((len(ids), layout.words), np.float32)
    raw.view(np.int64)[:, ID_WORD // 2] = ids
    words = raw.view(np.int32)
    if layout.seen_at >= 0:
        words[:, layout.seen_at] = hour if saved.seen is None else saved.seen
    if layout.show_at >= 0:
        raw[:, layout.show_at] = _ONE_SHOW if saved.shows is None else saved.shows
        raw[:, layout.click_at] = 0.0 if saved.clicks is None else saved.clicks
    state = rule_of(part.spec.optimizer).first_state(part.spec.width)
    at = slice(layout.state_at, layout.state_at + len(state))
    raw[:, at] = saved.state if keeps_state else state
    if keeps_state and saved.version is not None and saved.updates is not None:
        words[:, VERSION_WORD], words[:, UPDATES_WORD] = saved.version, saved.updates
    _put_weights(raw, layout, widened(part, ids, weights))
    return raw


def widened(part: SparseTable, ids: I64, weights: F32) -> F32:
    """Weights (n, width) of `part`: as many columns of `weights` as it has, then initial values."""
    columns = weights.shape[1]
    if columns == part.spec.width:
        return np.ascontiguousarray(weights)
    out = np.empty((len(ids), part.spec.width), np.float32)
    if columns < part.spec.width:
        fill_rows(part.spec.initializer, part.spec.seed, np.ascontiguousarray(ids), out)
    out[:, :columns] = weights[:, : part.spec.width]
    return out


def _put_weights(raw: F32, layout: RowLayout, weights: F32) -> None:
    at, width = layout.weights_at, layout.width
    if not layout.is_half:
        raw[:, at : at + width] = weights
        return
    stored = np.empty(weights.size, np.uint16)
    if layout.storage == "float16":
        halves.to_f16(weights.reshape(-1), 1.0, stored)
    else:
        halves.to_bf16(weights.reshape(-1), stored)
    raw.view(np.uint16)[:, 2 * at : 2 * at + width] = stored.reshape(weights.shape)
