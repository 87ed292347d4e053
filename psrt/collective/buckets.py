"""Gradients that travel together: a pure plan from their order and sizes.

Small gradients share a bucket, because a call costs more than its bytes. Buckets fill in the order
in which backward makes gradients, so that the first one travels while the rest is computed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Bucket:
    """Gradients by name, one behind the other in `size` elements; `starts` has their places."""

    names: tuple[str, ...]
    starts: tuple[int, ...]
    size: int


def plan_buckets(sizes: Iterable[tuple[str, int]], most_elements: int) -> tuple[Bucket, ...]:
    """Return the buckets of gradients, (name, elements) in the order in which they become final.

    A bucket is closed once another gradient would exceed `most_elements`; a gradient that is larger
    has a bucket of its own. Without gradients there is one empty bucket: a step is always one call.
    """
    buckets: list[Bucket] = []
    names: list[str] = []
    starts: list[int] = []
    filled = 0
    for name, size in sizes:
        if names and filled + size > most_elements:
            buckets.append(Bucket(tuple(names), tuple(starts), filled))
            names, starts, filled = [], [], 0
        names.append(name)
        starts.append(filled)
        filled += size
    if names or not buckets:
        buckets.append(Bucket(tuple(names), tuple(starts), filled))
    return tuple(buckets)


__all__ = ["Bucket", "plan_buckets"]
