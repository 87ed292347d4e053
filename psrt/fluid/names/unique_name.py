"""Names that no other layer has: one count for all programs, as Fluid keeps it.

Two programs of one process so never share a parameter by accident. Programs that shall have equal
names, those of trainers and a test program built anew, are built inside `guard()`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

_counts: Counter[str] = Counter()


def counts() -> Counter[str]:
    """How many names of each prefix were given out; builders count on in it."""
    return _counts


def generate(key: str) -> str:
    """`key_0`, `key_1`, …"""
    number = _counts[key]
    _counts[key] += 1
    return f"{key}_{number}"


@contextmanager
def guard(new_generator: object = None) -> Iterator[None]:
    """Count from 0 in the block, and as before behind it; the argument is Fluid's and not read."""
    global _counts
    before, _counts = _counts, Counter()
    try:
        yield
    finally:
        _counts = before


__all__ = ["generate", "guard"]
