"""Calls that need tables which are being loaded: they are handled once the tables are complete."""

from __future__ import annotations

from collections.abc import Callable, Collection

from psrt.core.clock import Clock
from psrt.pserver.loading.table_loader import TableLoader
from psrt.rpc import pb
from psrt.rpc.methods import Method
from psrt.rpc.serving import Later, deadline_of, keep_deadline
from psrt.rpc.wire import Message


def handled_later(
    loader: TableLoader, header: pb.Header, clock: Clock, handle: Callable[[], Message | Later]
) -> Later | None:
    """The reply of a call that waits for tables, None if it has all that it needs.

    `handle` is called then, and the call may wait there for the rest of its time. Raises the error
    of a table that cannot be loaded.
    """
    deadline_s = deadline_of(header, clock.now())

    def finish() -> Message | Later:
        keep_deadline(header, deadline_s, clock.now())
        return handle()

    wait = loader.wait_for(tables_of(header), deadline_s)
    return None if wait is None else Later(wait, finish)


def tables_of(header: pb.Header) -> Collection[str] | None:
    """The tables that must be complete before a call is handled, None = all."""
    match header.method:
        case Method.CUT:
            return None
        case Method.SHRINK:
            return list(header.shrink.tables) or None
        case Method.EXPORT:
            return [header.export.table]
    return [part.table for part in header.parts]
