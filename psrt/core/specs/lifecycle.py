"""Growth and eviction of rows of a sparse table: plain frozen data.

A limit of 0 means no limit. Ages count pushes of the row, not reads. See docs/reference/tables.md.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Lifecycle:
    """Conditions under which rows are dropped.

    During training, in small slices: rows not pushed for `ttl_rounds` rounds in Sync, in other
    modes mini-batches of all trainers (updates of the table, if its optimizer moves all rows); rows
    not pushed for `ttl_days`; and, while the table needs more than `max_bytes` over all pservers
    together, the rows pushed longest ago.

    By a shrink that a trainer requests (`fleet.shrink`): shows and clicks of all rows are
    multiplied by `decay`; then rows with a score below `delete_score` and expired rows are dropped.
    """

    ttl_rounds: int = 0
    ttl_days: float = 0.0
    max_bytes: int = 0
    delete_score: float = 0.0
    decay: float = 1.0


@dataclass(frozen=True)
class Growth:
    """Rows that start with `embed_width` weights.

    They get the others when a push brings the score of the row to `embedx_threshold`. Until then
    these read as zeros and take no updates.
    """

    embed_width: int = 1
    embedx_threshold: float = 10.0
