"""Grouping of a pserver's blocks into buckets that travel together.

The dense blocks of a pserver that hold twice `DEFAULT_MAX_BLOCK_SIZE` numbers or more are divided
into buckets. Each bucket has calls of its own, so that the push of one, the update of the next and
the reply of a third overlap; in mode Sync it has rounds of its own, like a pserver. The fixed cost
of a call is small for a bucket of that size or more, and one of less than twice that size travels
through shared memory. The specs of tables name their bucket `section`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

MAX_BUCKETS = 64
"""Per pserver, which checks all of them for each decision."""

MAX_INFLIGHT = 3
"""Calls of a trainer to one pserver at a time, if it has several buckets: one on its way there, one
being applied, one on its way back."""


def in_buckets(endpoints: Sequence[str], sizes: Sequence[int], enough: int) -> list[int]:
    """The bucket of each block within its pserver, 0, 1, …, from endpoint and size of all blocks.

    Buckets are runs of blocks of about equal size, as many as have `enough` numbers each, at most
    `MAX_BUCKETS`; everything else of a pserver belongs to its bucket 0.
    """
    totals: dict[str, int] = defaultdict(int)
    for endpoint, size in zip(endpoints, sizes, strict=True):
        totals[endpoint] += size
    counts = {at: min(max(1, total // enough), MAX_BUCKETS) for at, total in totals.items()}
    before: dict[str, int] = defaultdict(int)
    buckets = []
    for endpoint, size in zip(endpoints, sizes, strict=True):
        buckets.append(before[endpoint] * counts[endpoint] // totals[endpoint])
        before[endpoint] += size
    return buckets


__all__ = ["MAX_BUCKETS", "MAX_INFLIGHT", "in_buckets"]
