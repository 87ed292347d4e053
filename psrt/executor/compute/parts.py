"""Work on one array cut for several threads, in the same way every time: who added up a part of a
gradient has it in the cache of its core when it updates by it.
"""

from __future__ import annotations

SMALL = 1 << 13
"""Numbers from which a part is worth a computation of its own."""

_LINE = 16  # numbers: no two parts share a cache line


def part_of(count: int, number: int, of: int, width: int = 1) -> slice:
    """Where the `number`-th of `of` parts of `count` rows of `width` numbers lies; a small array is
    not cut, its first part is all of it."""
    if count * width < SMALL:
        return slice(0, count if number == 0 else 0)
    unit = max(1, _LINE // width)
    start, stop = (count * each // of // unit * unit for each in (number, number + 1))
    return slice(start, count if number + 1 == of else stop)
