"""Which blocks of a pserver travel together.

The dense blocks of a pserver that hold twice `DEFAULT_MAX_BLOCK_SIZE` numbers or more are dealt to
sections. Each section has calls of its own, so that while one is on its way the next is being
updated and a third comes back; in mode Sync it has rounds of its own, as if it were a pserver of
its own. The time of a call counts little in a section of that size or more, and one of less than
twice that size travels through shared memory.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

MAX_BUCKETS = 64
"""Of one pserver, which looks at all of them when it decides what waits."""

MAX_INFLIGHT = 3
"""Calls of a trainer to one pserver at a time, if it has sections: one on its way there, one that
is applied, one on its way back."""


def in_buckets(places: Sequence[str], sizes: Sequence[int], enough: int) -> list[int]:
    """The section of each block within its pserver, 0, 1, …, given place and size of all blocks.

    Sections are runs of blocks of about equal size, as many as have `enough` numbers each,
    `MAX_BUCKETS` at most; everything else of a pserver belongs to its section 0.
    """
    totals: dict[str, int] = defaultdict(int)
    for place, size in zip(places, sizes, strict=True):
        totals[place] += size
    counts = {place: min(max(1, total // enough), MAX_BUCKETS) for place, total in totals.items()}
    before: dict[str, int] = defaultdict(int)
    sections = []
    for place, size in zip(places, sizes, strict=True):
        sections.append(before[place] * counts[place] // totals[place])
        before[place] += size
    return sections
