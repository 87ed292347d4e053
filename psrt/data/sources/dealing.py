"""The unread rests of files, dealt among trainers: every byte to exactly one of them.

`dealt` decides by sizes alone; `deal` cuts files at line ends accordingly. Every trainer computes
the shares of all from the same rests, so they agree without messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from psrt.data.sources.places import BEGINNING, DataFile, FilePart, Place, Position
from psrt.data.sources.sharding import line_starts


@dataclass(frozen=True)
class Rest:
    """The unread end of a file: all of it, or what lies behind `first`.

    `size_bytes` is its weight. A `FilePart` may be cut; it has no `first`. `is_begun`: some of the
    file was read.
    """

    file: DataFile
    size_bytes: int
    first: Position | None = None
    is_begun: bool = False

    @property
    def may_be_cut(self) -> bool:
        return isinstance(self.file, FilePart)


@dataclass(frozen=True)
class DealtFiles:
    """Files of one trainer, and the place in them where it begins."""

    files: tuple[DataFile, ...] = ()
    place: Place = BEGINNING


@dataclass(frozen=True)
class Span:
    """Bytes `start` to `stop` of rest `number`."""

    number: int
    start: int
    stop: int


def deal(rests: Sequence[Rest], trainers: int) -> list[DealtFiles]:
    """Return the shares of `trainers` trainers of these rests, by `dealt`.

    A span is moved to the next starts of lines, so a share may become empty. Raises `DataError` if
    a file that is cut cannot be read.
    """
    sizes, may_be_cut = [rest.size_bytes for rest in rests], [rest.may_be_cut for rest in rests]
    spans = dealt(sizes, may_be_cut, [rest.is_begun for rest in rests], trainers)
    ends: dict[int, list[tuple[int, int]]] = {}
    for owner, of_one in enumerate(spans):
        for span in of_one:
            ends.setdefault(span.number, []).append((span.stop, owner))
    shares: list[list[Rest]] = [[] for _ in range(trainers)]
    for number, rest in enumerate(rests):
        for piece, owner in _pieces(rest, sorted(ends.get(number, ()))):
            shares[owner].append(piece)
    return [_share(of_one) for of_one in shares]


def dealt(
    sizes: Sequence[int], may_be_cut: Sequence[bool], begun: Sequence[bool], trainers: int
) -> list[list[Span]]:
    """Return the spans of each trainer, of near-equal weight.

    Rests that may not be cut, and files that were not begun, go whole, the largest first, each to
    the trainer with the fewest bytes. Files that would give it more than its share, and rests of
    files that were begun, then fill up the others.
    """
    shares: list[list[Span]] = [[] for _ in range(trainers)]
    loads, poured, fair = [0] * trainers, [], -(-sum(sizes) // trainers)
    for number in sorted(range(len(sizes)), key=lambda n: (may_be_cut[n], -sizes[n], n)):
        owner = min(range(trainers), key=lambda t: (loads[t], t))
        if may_be_cut[number] and (begun[number] or loads[owner] + sizes[number] > fair):
            poured.append(number)
        else:
            loads[owner] += sizes[number]
            shares[owner].append(Span(number, 0, sizes[number]))
    _pour(sizes, sorted(poured), loads, shares)
    return shares


def _pour(
    sizes: Sequence[int], numbers: Sequence[int], loads: list[int], shares: list[list[Span]]
) -> None:
    """Fill trainers up to one level, in order, with the rests `numbers`, cut where one is full."""
    level = _level(loads, sum(sizes[number] for number in numbers))
    owner = 0
    for number in numbers:
        start = 0
        while start < sizes[number]:
            while loads[owner] >= level:
                owner += 1
            stop = min(sizes[number], start + level - loads[owner])
            shares[owner].append(Span(number, start, stop))
            loads[owner], start = loads[owner] + stop - start, stop


def _level(loads: Sequence[int], poured: int) -> int:
    """Return the least level up to which `loads` have room for `poured` bytes."""
    low, high = min(loads), max(loads) + poured
    while low < high:
        middle = (low + high) // 2
        if sum(max(0, middle - load) for load in loads) >= poured:
            high = middle
        else:
            low = middle + 1
    return low


def _pieces(rest: Rest, ends: Sequence[tuple[int, int]]) -> list[tuple[Rest, int]]:
    """Return pieces of a rest with their owners; `ends` are those of spans in order, and owners."""
    if len(ends) <= 1 or not isinstance(rest.file, FilePart):
        return [(rest, owner) for _, owner in ends]
    part = rest.file
    stops = line_starts(part.path, [part.start + stop for stop, _ in ends[:-1]])
    bounds = [part.start, *(min(stop, part.stop) for stop in stops), part.stop]
    return [
        (Rest(FilePart(part.path, start, stop), stop - start, is_begun=rest.is_begun), owner)
        for (start, stop), (_, owner) in zip(pairwise(bounds), ends, strict=True)
        if start < stop
    ]


def _share(rests: Sequence[Rest]) -> DealtFiles:
    """Return the files of one trainer: files with a position come first."""
    inside = [rest for rest in rests if rest.first is not None]
    whole = [rest.file for rest in rests if rest.first is None]
    positions = tuple(rest.first for rest in inside if rest.first is not None)
    return DealtFiles((*(rest.file for rest in inside), *whole), Place(positions, len(inside)))
