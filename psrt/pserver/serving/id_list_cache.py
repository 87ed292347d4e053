"""A cache of id lists that trainers have pulled and may push gradients of, grouped by stripe.

A push that names a cached list brings no ids, and needs none hashed. The cache keeps the newest
`MOST_LISTS` of each trainer and table, even after they were pushed, since a push may be repeated.
It takes at most `limit_bytes` and drops the least recently used lists first; a list larger than
that is not cached.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TypeAlias

from psrt.pserver.tables import RoutedIds

LIMIT_BYTES = 256 << 20
MOST_LISTS = 8
"""Twice the lists that a trainer may name (`psrt.communicator.requests.known_ids`), since its calls
overtake each other."""

_Name: TypeAlias = tuple[int, str, int]  # trainer, table, number of the list


class IdListCache:
    """Id lists by trainer, table and number; any thread may call.

    The number is a digest of the ids, so one name never means two lists.
    """

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._lock = threading.Lock()
        self._lists: OrderedDict[_Name, RoutedIds] = OrderedDict()  # the last used is last
        self._numbers: dict[tuple[int, str], dict[int, None]] = {}  # the last pulled is last
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self._lists)

    def put(self, trainer: int, table: str, number: int, routed: RoutedIds) -> bool:
        """Keep a copy of `routed`, which is in memory of its message; False if it is too large."""
        if routed.nbytes > self._limit_bytes:
            return False
        kept = routed.copy()
        with self._lock:
            self._drop((trainer, table, number))
            self._lists[trainer, table, number] = kept
            self.nbytes += kept.nbytes
            numbers = self._numbers.setdefault((trainer, table), {})
            numbers[number] = None
            if len(numbers) > MOST_LISTS:
                self._drop((trainer, table, next(iter(numbers))))
            while self.nbytes > self._limit_bytes:
                self._drop(next(iter(self._lists)))
        return True

    def get(self, trainer: int, table: str, number: int) -> RoutedIds | None:
        """The list, for use by one thread; None if it is not cached."""
        with self._lock:
            kept = self._lists.get((trainer, table, number))
            if kept is None:
                return None
            self._lists.move_to_end((trainer, table, number))
        return kept.again()

    def release(self, trainer: int) -> None:
        """Drop the lists of `trainer`, which has completed."""
        with self._lock:
            for name in [name for name in self._lists if name[0] == trainer]:
                self._drop(name)

    def _drop(self, name: _Name) -> None:
        kept = self._lists.pop(name, None)
        if kept is not None:
            self.nbytes -= kept.nbytes
            trainer, table, number = name
            del self._numbers[trainer, table][number]
