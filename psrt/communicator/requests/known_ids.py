"""Lists of ids that pservers remember, so that a push need not repeat the ids of a pull.

A trainer pulls the rows of a mini-batch and, a step later, pushes gradients of the same ids in the
same order. The pull names the list by a number, a digest of the ids; the reply of a pserver that
remembers the list repeats the number. A push of this list sends the number instead of the ids, and
reuses their split by owner. Lists merged from several gradients match none and travel whole. Any
thread may call this.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from psrt.core.types import I32, I64
from psrt.kernels.lowlevel import digest

log = logging.getLogger("psrt.communicator")

FEWEST_IDS = 64
"""Sending fewer again costs less than remembering them."""

MOST_LISTS = 4
"""Remembered lists of one table: those of steps whose gradients may still be pushed."""

MOST_MISSES = 3
"""After so many forgotten lists a pserver is not asked to remember for a while."""

LISTS_OF_REST = 1000
"""Length of that while, in pulled lists: at most `MOST_MISSES` of their pushes are sent twice."""

Owners = list[tuple[int, I32 | None]]
"""(endpoint, positions of its ids in the list), None for all in order."""


@dataclass(eq=False)
class IdList:
    """A pulled list; `number` 0 = not to be remembered; the endpoints `held_by` remember it."""

    number: int
    owners: Owners
    held_by: set[int] = field(default_factory=set)


class KnownIds:
    """The remembered lists of all tables."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lists: dict[str, OrderedDict[int, IdList]] = {}
        self._misses: dict[int, int] = {}
        self._pulled = 0
        self._rests_until: dict[int, int] = {}

    def pulled(self, table: str, ids: I64, split: Callable[[], Owners]) -> IdList:
        """Record a pull of `ids` of `table`; `split` groups them by owner."""
        if len(ids) < FEWEST_IDS:
            return IdList(0, split())
        number = _number(ids)
        with self._lock:
            lists = self._lists.setdefault(table, OrderedDict())
            known = lists.pop(number, None)
        known = known or IdList(number, split())
        with self._lock:
            lists[number] = known
            self._pulled += 1
            if len(lists) > MOST_LISTS:
                lists.popitem(last=False)
        return known

    def find(self, table: str, ids: I64) -> IdList | None:
        """The recently pulled list of exactly these ids."""
        if len(ids) < FEWEST_IDS or table not in self._lists:
            return None
        number = _number(ids)
        with self._lock:
            return self._lists[table].get(number)

    def number_for(self, known: IdList | None, endpoint: int) -> int:
        """The number that replaces the ids at a pserver, 0 = send the ids."""
        is_held = known is not None and endpoint in known.held_by and self.trusts(endpoint)
        return known.number if known is not None and is_held else 0

    def trusts(self, endpoint: int) -> bool:
        """False while this pserver is not asked to remember."""
        return self._pulled >= self._rests_until.get(endpoint, 0)

    def missed(self, endpoint: int) -> None:
        """Record that a pserver had forgotten a list, and drop its others: it may miss them too."""
        with self._lock:
            for lists in self._lists.values():
                for known in lists.values():
                    known.held_by.discard(endpoint)
            self._misses[endpoint] = (self._misses.get(endpoint, 0) + 1) % MOST_MISSES
            rests = self._misses[endpoint] == 0
            if rests:
                self._rests_until[endpoint] = self._pulled + LISTS_OF_REST
        if rests:
            log.info(
                "pserver %d forgets lists of ids; the next %d are sent whole",
                *(endpoint, LISTS_OF_REST),
            )


def _number(ids: I64) -> int:
    """A digest of the ids, never 0, which means no list."""
    return int(digest(np.ascontiguousarray(ids, np.int64))) or 1
