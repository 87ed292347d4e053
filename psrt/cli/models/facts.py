"""Statistics of parameters and rows, in one pass and bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from psrt.cli.models.sources import DenseSource, Source, TableSource
from psrt.core.types import F32, F64, I64

BINS = 64
_LEAST_EXPONENT, _LARGEST_EXPONENT = -8.0, 8.0
EDGES: F64 = np.logspace(_LEAST_EXPONENT, _LARGEST_EXPONENT, BINS + 1)
"""Edges of the bins of norms: eight to a power of ten."""


@dataclass
class DenseFacts:
    """A dense parameter; the numbers are None where values were not read."""

    name: str
    shape: tuple[int, ...]
    norm: float | None = None
    smallest: float | None = None
    largest: float | None = None
    not_finite: int | None = None


@dataclass
class RowFacts:
    """A sparse table. Norms are Euclidean, of rows; `top` are the rows with the largest, as (id,
    norm, row); `wanted` the rows of the ids that were asked for and are there; `bins` the number of
    norms between EDGES."""

    name: str
    width: int = 0
    rows: int = 0
    mean_norm: float = 0.0
    largest_norm: float = 0.0
    zero_rows: int = 0
    not_finite_rows: int = 0
    top: list[tuple[int, float, list[float]]] = field(default_factory=list)
    wanted: dict[int, list[float]] = field(default_factory=dict)
    bins: I64 = field(default_factory=lambda: np.zeros(BINS, np.int64))


def dense_facts(source: DenseSource) -> DenseFacts:
    """Read a dense parameter; one that stays away has no numbers."""
    facts = DenseFacts(source.name, source.shape)
    if source.pieces is None:
        return facts
    squares, bounds, not_finite = 0.0, [np.inf, -np.inf], 0
    for values in source.pieces():
        finite = values[np.isfinite(values)]
        not_finite += values.size - finite.size
        squares += float(np.square(finite, dtype=np.float64).sum())
        if finite.size:
            bounds = [min(bounds[0], float(finite.min())), max(bounds[1], float(finite.max()))]
    facts.norm, facts.not_finite = float(np.sqrt(squares)), not_finite
    if bounds[0] <= bounds[1]:
        facts.smallest, facts.largest = bounds
    return facts


def table_facts(source: TableSource, top: int, wanted: Sequence[int] = ()) -> RowFacts:
    """Read all rows of a table, page by page."""
    facts, total = RowFacts(source.name), 0.0
    for ids, rows in source.pages():
        norms: F64 = np.sqrt(np.square(rows, dtype=np.float64).sum(axis=1))
        finite = np.isfinite(norms)
        facts.width = rows.shape[1]
        facts.rows += len(ids)
        facts.zero_rows += int((norms == 0).sum())
        facts.not_finite_rows += int((~finite).sum())
        total += float(norms[finite].sum())
        facts.largest_norm = max(facts.largest_norm, float(norms[finite].max(initial=0.0)))
        _add_top(facts, ids, rows, np.where(finite, norms, np.inf), top)
        _add_wanted(facts, ids, rows, wanted)
        facts.bins += _binned(norms[finite])
    finite_rows = facts.rows - facts.not_finite_rows
    facts.mean_norm = total / finite_rows if finite_rows else 0.0
    return facts


def _add_top(facts: RowFacts, ids: I64, rows: F32, norms: F64, top: int) -> None:
    for place in np.argsort(-norms, kind="stable")[:top]:
        facts.top.append((int(ids[place]), float(norms[place]), rows[place].tolist()))
    facts.top = sorted(facts.top, key=lambda each: -each[1])[:top]


def _add_wanted(facts: RowFacts, ids: I64, rows: F32, wanted: Sequence[int]) -> None:
    for id_ in wanted:
        for place in np.flatnonzero(ids == id_):
            facts.wanted[id_] = rows[place].tolist()


def _binned(norms: F64) -> I64:
    inside = np.clip(norms[norms > 0], EDGES[0], EDGES[-1])
    return np.histogram(inside, EDGES)[0].astype(np.int64)


def plain(source: Source, dense: Iterable[DenseFacts], tables: Iterable[RowFacts]) -> Any:
    """Facts as JSON has them, with null for what is not finite."""
    return _legal(
        {
            "source": source.label,
            "dense": [{**vars(each), "shape": list(each.shape)} for each in dense],
            "tables": [{**vars(each), "bins": each.bins.tolist()} for each in tables],
        }
    )


def _legal(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _legal(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_legal(each) for each in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
