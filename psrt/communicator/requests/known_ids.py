"""Lists of ids that pservers remember, so that a push need not send again what a pull has sent.

A trainer pulls the rows of a mini-batch and, a step later, pushes gradients of the same ids in the
same order. With the pull it names the list by a number, a digest of the ids; a pserver that
remembers the list says so in its reply. A push of a list with that number sends the number, and
takes over who owns which of the ids. Lists that several gradients were merged into match none and
travel whole. Any thread may call this.
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
"""Fewer are sent again at less expense than they are remembered."""

MOST_LISTS = 4
"""Of one table: those of the steps whose gradients may still come."""

MOST_MISSES = 3
"""A pserver that has forgotten so many lists before they were pushed is not asked for a while."""

LISTS_OF_REST = 1000
"""How long that is, in lists that are pulled: three pushes of them are sent twice at the most."""

Shares = list[tuple[int, I32 | None]]
"""(endpoint, positions of its ids in the list), None for all in order."""


@dataclass(eq=False)
class IdList:
    """A list that was pulled by `number`, 0 = nobody shall remember it; `held_by` are the endpoints
    that do."""

    number: int
    shares: Shares
    held_by: set[int] = field(default_factory=set)


class KnownIds:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lists: dict[str, OrderedDict[int, IdList]] = {}
        self._misses: dict[int, int] = {}
        self._pulled = 0
        self._rests_until: dict[int, int] = {}

    def pulled(self, table: str, ids: I64, share: Callable[[], Shares]) -> IdList:
        """`ids` of `table` are about to be pulled; `share` deals them to their owners."""
        if len(ids) < FEWEST_IDS:
            return IdList(0, share())
        number = _number(ids)
        with self._lock:
            lists = self._lists.setdefault(table, OrderedDict())
            known = lists.pop(number, None)
        known = known or IdList(number, share())
        with self._lock:
            lists[number] = known
            self._pulled += 1
            if len(lists) > MOST_LISTS:
                lists.popitem(last=False)
        return known

    def find(self, table: str, ids: I64) -> IdList | None:
        """The list of exactly these ids that was pulled lately."""
        if len(ids) < FEWEST_IDS or table not in self._lists:
            return None
        number = _number(ids)
        with self._lock:
            return self._lists[table].get(number)

    def number_for(self, known: IdList | None, endpoint: int) -> int:
        """By what number a pserver knows the list, 0 = send it."""
        is_held = known is not None and endpoint in known.held_by and self.trusts(endpoint)
        return known.number if known is not None and is_held else 0

    def trusts(self, endpoint: int) -> bool:
        """Whether it makes sense to ask this pserver to remember."""
        return self._pulled >= self._rests_until.get(endpoint, 0)

    def missed(self, endpoint: int) -> None:
        """A pserver had forgotten a list: perhaps others as well."""
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
    """Never 0, which stands for no list."""
    return int(digest(np.ascontiguousarray(ids, np.int64))) or 1
