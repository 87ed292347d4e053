"""Rows that come with the answer of a push, read once its gradients are applied.

A pull of their own would cost the trainer and each pserver one more call a step, and the trainer
two more threads to wake.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import TypeAlias

from psrt.communicator.async_.sender import OnAnswer
from psrt.communicator.base import Versions
from psrt.communicator.requests import Request, Router
from psrt.core.types import F32, I64

Rows: TypeAlias = tuple[dict[str, F32], Versions]
"""Rows by table, and the versions read of these tables."""

Take: TypeAlias = Callable[["Future[Rows]"], dict[str, F32]]
"""Waits for rows; raises what has ended the senders."""


class RowsBehindPush:
    """The rows of `wanted`, distinct ids (n,) by table."""

    def __init__(self, wanted: Mapping[str, I64], take: Take) -> None:
        self._wanted, self._take = wanted, take
        self._rows: Future[Rows] = Future()

    def wait(self) -> dict[str, F32]:
        """See `ComingRows.wait`."""
        return self._take(self._rows)

    def add_to(self, requests: list[Request], router: Router) -> OnAnswer:
        """Add pulls to a push; returns the function that takes its answer."""
        rows = router.pull_rows(requests, self._wanted)

        def received(versions: Versions) -> None:
            # A view of shared memory would keep the next answers out of it until its step is over.
            own = {name: r if r.flags.writeable else r.copy() for name, r in rows.items()}
            read = {of: version for of, version in versions.items() if of[1] in rows}
            self._rows.set_result((own, read))

        return received


class AskedRows:
    """Questions of the training thread, until the push that ends the step takes them."""

    def __init__(self, router: Router, take: Take) -> None:
        self._router, self._take = router, take
        self._asked: deque[RowsBehindPush] = deque()

    def ask(self, wanted: Mapping[str, I64]) -> RowsBehindPush:
        """Ask for rows of distinct ids (n,) by table, before the running step is queued."""
        asked = RowsBehindPush(wanted, self._take)
        self._asked.append(asked)
        return asked

    def add_to(self, requests: list[Request]) -> OnAnswer:
        """Add all pulls to a push that ends a step; on a sender thread."""
        taken = []
        while self._asked:
            taken.append(self._asked.popleft().add_to(requests, self._router))

        def received(versions: Versions) -> None:
            for each in taken:
                each(versions)

        return received


__all__ = ["AskedRows", "Rows", "RowsBehindPush"]
