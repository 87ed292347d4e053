"""Pushes that a trainer keeps until they are durable, to send them again to a recovered pserver.

A push is copied before it is first sent, if its arrays may change: those of a queue, and rows for
one of several pservers, are in `copies` already and do not. Those of one step and pserver are added
together, so that a recovery repeats all of a step or nothing: trainers that repeat rounds in one
order never wait for each other. A cut that this trainer took part in has its pushes up to then;
they are dropped when the cut is complete. A pserver that has more of them in a local cut reports up
to which.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

from psrt.communicator.requests.copies import Copies
from psrt.communicator.requests.requests import Request
from psrt.core.types import Array
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method


class RetainedPush(NamedTuple):
    """One push as it is sent again; `order` sorts those of a pserver."""

    method: Method
    header: pb.Header
    tensors: tuple[Array, ...]
    size_bytes: int
    order: tuple[int, int, int]


class RetainedPushes:
    """The pushes to all pservers of a job; any thread calls this.

    Of more than `limit_bytes` each push waits for a cut that is under way, or with
    `waits_for_deltas` for local cuts of the pservers. `newest_before` is the newest cut that was
    proposed before this trainer joined; it `has_trained` once it has completed, and `is_recorded`
    once a complete cut has that, too. Arrays that are copies in `copies` must not change.
    """

    def __init__(
        self, clients: Sequence[Client], limit_bytes: int, waits_for_deltas: bool = False
    ) -> None:
        self.limit_bytes, self._waits_for_deltas = limit_bytes, waits_for_deltas
        self.size_bytes = self.complete = self.newest_before = 0
        self.has_trained = self.is_recorded = False
        self._clients = tuple(clients)
        self._kept: list[dict[int, RetainedPush]] = [{} for _ in clients]
        self._durable_to = [0 for _ in clients]
        self._cuts: dict[int, list[int]] = {}  # the last push to each pserver before a cut
        self._pending = 0  # the cut under way that this trainer took part in, 0 = none
        self.copies = Copies(limit_bytes)
        self._changed = threading.Condition()

    @property
    def count(self) -> int:
        """The number of pushes kept."""
        with self._changed:
            return sum(map(len, self._kept))

    @property
    def seen_cut(self) -> int:
        """The newest cut that this trainer has heard of."""
        return max([self.complete, *self._cuts])

    def add(self, method: Method, requests: Sequence[Request]) -> None:
        """Give the requests of one step push keys, and keep copies of their pushes."""
        by_endpoint: dict[int, list[Request]] = {}
        for request in requests:
            by_endpoint.setdefault(request.endpoint, []).append(request)
        with self._changed:
            for endpoint, of_one in by_endpoint.items():
                for request in of_one:
                    key = self._clients[endpoint].next_push_key()
                    request.header.push_key.CopyFrom(key)
                    push = _kept(method, request, self.copies)
                    self._kept[endpoint][key.sequence] = push
                    self.size_bytes += push.size_bytes

    def of(self, endpoint: int) -> tuple[list[RetainedPush], int]:
        """The pushes to one pserver, by round and bucket, else by sequence, and the newest complete
        cut: it has all others."""
        with self._changed:
            pushes = sorted(self._kept[endpoint].values(), key=lambda push: push.order)
            return pushes, self.complete

    def takes_part(self, number: int) -> None:
        """Record that no push is under way, and that this trainer takes part in a cut."""
        with self._changed:
            self._pending = number
            self._cuts[number] = [client.last_push for client in self._clients]

    def completed(self, number: int) -> None:
        """Drop what the complete cut `number` has.

        A cut has all pushes of a trainer that has trained, and took no part in it. One that was
        proposed before this trainer joined has none.
        """
        with self._changed:
            if number <= self.complete:
                return
            self.complete = number
            if self.has_trained and number > self.newest_before and number not in self._cuts:
                self._drop_all([client.last_push for client in self._clients])
                self.is_recorded = True
            for cut in [each for each in sorted(self._cuts) if each <= number]:
                self._drop_all(self._cuts.pop(cut))
            self._pending = 0 if number >= self._pending else self._pending
            self._changed.notify_all()

    def durable(self, endpoint: int, sequence: int) -> None:
        """Drop the pushes to one pserver up to `sequence`, which has them on disk."""
        if sequence <= self._durable_to[endpoint]:
            return  # as of most replies
        with self._changed:
            self._durable_to[endpoint] = max(sequence, self._durable_to[endpoint])
            self._drop(endpoint, sequence)
            self._changed.notify_all()

    def newest_of(self, endpoint: int) -> int:
        """The sequence of the last push that is kept of one pserver, 0 = none."""
        with self._changed:
            return max(self._kept[endpoint], default=0)

    def cut_failed(self) -> None:
        """Expect no cut: pushes beyond the limit are kept until another one is made."""
        with self._changed:
            self._pending = 0
            self._changed.notify_all()

    def wait_for_room(self, timeout_s: float) -> bool:
        """Wait while the limit is passed and something is under way that will make room.

        False at the deadline.
        """
        with self._changed:
            return self._changed.wait_for(self._has_room, timeout_s)

    def wait_until_recorded(self, timeout_s: float) -> bool:
        """Wait until a cut has all pushes, and the end of this trainer; False at the deadline."""
        with self._changed:
            return self._changed.wait_for(lambda: self.is_recorded, timeout_s)

    def _has_room(self) -> bool:
        makes_room = self._pending or self._waits_for_deltas
        return self.size_bytes <= self.limit_bytes or not makes_room

    def _drop_all(self, last_pushes: Sequence[int]) -> None:
        for endpoint, last in enumerate(last_pushes):
            self._drop(endpoint, last)

    def _drop(self, endpoint: int, last: int) -> None:
        kept = self._kept[endpoint]
        for sequence in [each for each in kept if each <= last]:
            self.size_bytes -= kept.pop(sequence).size_bytes


def _kept(method: Method, request: Request, copies: Copies) -> RetainedPush:
    header, tensors = request.pushed()
    kept = tuple(each if copies.has(each) else copies.copy(each) for each in tensors)
    order = (header.round, request.bucket, header.push_key.sequence)
    size_bytes = header.ByteSize() + sum(each.nbytes for each in kept)
    return RetainedPush(method, header, kept, size_bytes, order)
