"""Lists of ids that trainers have pulled and may push gradients of: remembered, grouped by stripe.

A push that names its list brings no ids, and needs none hashed. Of each trainer and table the
newest `MOST_LISTS` are kept, whether they were pushed with or not, as a push may be repeated; of
all trainers together at most `limit_bytes`, of which the least recently used go first. A list that
takes more than all of it is not remembered. Any handler thread calls this.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TypeAlias

from psrt.pserver.tables import Routed

LIMIT_BYTES = 256 << 20
MOST_LISTS = 8
"""Those that a trainer may still name (`psrt.communicator.requests.known_ids`), and as many again,
since its calls overtake each other."""

_Name: TypeAlias = tuple[int, str, int]  # trainer, table, number of the list


class IdLists:
    """A trainer names a list by a digest of its ids, so one name never means two lists."""

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._lock = threading.Lock()
        self._lists: OrderedDict[_Name, Routed] = OrderedDict()  # the last used stands last
        self._numbers: dict[tuple[int, str], dict[int, None]] = {}  # the last pulled stands last
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self._lists)

    def remember(self, trainer: int, table: str, number: int, routed: Routed) -> bool:
        """Keep a copy of the list: `routed` lies in the message that brought it."""
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

    def recall(self, trainer: int, table: str, number: int) -> Routed | None:
        """The list, for one thread to use; None if it is remembered no more."""
        with self._lock:
            kept = self._lists.get((trainer, table, number))
            if kept is None:
                return None
            self._lists.move_to_end((trainer, table, number))
        return kept.again()

    def release(self, trainer: int) -> None:
        """`trainer` pushes nothing more."""
        with self._lock:
            for name in [name for name in self._lists if name[0] == trainer]:
                self._drop(name)

    def _drop(self, name: _Name) -> None:
        kept = self._lists.pop(name, None)
        if kept is not None:
            self.nbytes -= kept.nbytes
            trainer, table, number = name
            del self._numbers[trainer, table][number]
