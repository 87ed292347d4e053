"""How rows of a sparse table grow and end: plain frozen data.

A limit of 0 is none. Ages count pushes of the row, not reads. See docs/reference/tables.md.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Lifecycle:
    """Which rows are dropped, and when.

    Beside training, in small slices: rows that were not pushed for `ttl_rounds` rounds in Sync,
    mini-batches of all trainers else (updates of the table, if its optimizer moves all rows); rows
    not pushed for `ttl_days`; and, once the table needs more than `max_bytes` over all pservers
    together, those pushed longest ago.

    By a shrink, which somebody asks for (`fleet.shrink`): shows and clicks of all rows are
    multiplied by `decay`, and rows whose score is below `delete_score` then are dropped, with those
    past their time.
    """

    ttl_rounds: int = 0
    ttl_days: float = 0.0
    max_bytes: int = 0
    delete_score: float = 0.0
    decay: float = 1.0


@dataclass(frozen=True)
class Growth:
    """Rows that start short: the first `embed_width` weights at once, the others when a push brings
    the row's score to `embedx_threshold`. Until then these read as zeros and take no updates."""

    embed_width: int = 1
    embedx_threshold: float = 10.0
