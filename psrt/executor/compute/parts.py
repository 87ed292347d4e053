"""Splitting of one array for several threads, always at the same positions.

The thread that sums a part of a gradient has it in its cache when it updates by that part.
"""

from __future__ import annotations

SMALL = 1 << 13
"""Least number of elements that is worth a computation of its own."""

_LINE = 16  # elements of a cache line, which no two parts share


def part_of(count: int, number: int, of: int, width: int = 1) -> slice:
    """The rows of part `number` out of `of`, for `count` rows of `width` elements.

    A small array is not split: part 0 is all of it.
    """
    if count * width < SMALL:
        return slice(0, count if number == 0 else 0)
    unit = max(1, _LINE // width)
    start, stop = (count * each // of // unit * unit for each in (number, number + 1))
    return slice(start, count if number + 1 == of else stop)
