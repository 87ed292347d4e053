"""Unique names of layers: one count for all programs, as Fluid keeps it.

So two programs of one process never share a parameter by accident. Programs that need equal names,
such as those of trainers and a test program built anew, are built inside `guard()`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

_counts: Counter[str] = Counter()


def counts() -> Counter[str]:
    """Return the number of names given out for each prefix; builders continue it."""
    return _counts


def generate(key: str) -> str:
    """Return `key_0`, `key_1`, …"""
    number = _counts[key]
    _counts[key] += 1
    return f"{key}_{number}"


def switch(new_generator: Counter[str] | None = None) -> Counter[str]:
    """Count anew, or go on with former counts, from here on; returns the counts before."""
    global _counts
    before, _counts = _counts, Counter() if new_generator is None else new_generator
    return before


@contextmanager
def guard(new_generator: object = None) -> Iterator[None]:
    """Count from 0 in the block, then continue the former counts; the argument is unused."""
    before = switch()
    try:
        yield
    finally:
        switch(before)


@contextmanager
def name_scope(prefix: str | None = None) -> Iterator[None]:
    """Group ops for drawings, as in Fluid; names stay as they are."""
    yield


__all__ = ["generate", "guard", "switch"]
