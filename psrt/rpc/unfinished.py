"""Limits of frames that have not arrived as a whole: their bytes together, and their time.

Without them, a peer could announce large frames, send most of each, and keep a pserver's memory.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

from psrt.core.errors import UnavailableError
from psrt.rpc.host_shares import HOST_SHARE, HostShares

UNFINISHED_BYTES = 8 << 30
"""Limit of the bytes of unfinished frames, unless a pserver has its own."""

GRACE_S = 30.0
LEAST_BYTES_PER_S = 1 << 20
_SMALL_BYTES = 1 << 20  # a frame of this size fits the buffer that its connection has anyway


class UnfinishedFrames:
    """The unfinished frames of all callers of a pserver, `limit_bytes` at most together.

    Those of one host have at most `host_share` of it.
    """

    def __init__(self, limit_bytes: int, host_share: float = HOST_SHARE) -> None:
        self._limit_bytes = limit_bytes
        self._hosts = HostShares("bytes under way", int(limit_bytes * host_share))
        self._lock = threading.Lock()
        self._bytes = 0

    @contextlib.contextmanager
    def expect(self, host: str, size_bytes: int) -> Iterator[float]:
        """Count a frame of `host` inside the block; returns when it has to be complete.

        The time is one of `time.monotonic`. Raises `UnavailableError` if there is no room.
        """
        by_s = time.monotonic() + GRACE_S + size_bytes / LEAST_BYTES_PER_S
        if size_bytes <= _SMALL_BYTES:
            yield by_s
            return
        self._add(size_bytes)
        try:
            self._hosts.take(host, size_bytes)
            try:
                yield by_s
            finally:
                self._hosts.give_back(host, size_bytes)
        finally:
            self._remove(size_bytes)

    def _add(self, size_bytes: int) -> None:
        with self._lock:
            if self._bytes and self._bytes + size_bytes > self._limit_bytes:
                raise UnavailableError(
                    f"A message of {size_bytes} bytes was refused: {self._bytes} bytes of others "
                    f"are under way, and the limit is {self._limit_bytes}.",
                    hint="The caller tries again. Raise max_unfinished_mib of the pserver, or use "
                    "more pservers.",
                )
            self._bytes += size_bytes

    def _remove(self, size_bytes: int) -> None:
        with self._lock:
            self._bytes -= size_bytes
