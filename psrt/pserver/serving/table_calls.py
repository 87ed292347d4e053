"""Handlers of EXPORT, SHRINK and GIVE: pages of rows, sweeps that a trainer asks for, values that
dense blocks begin with."""

from __future__ import annotations

from psrt.core.errors import WireError
from psrt.pserver.eviction import Upkeep
from psrt.pserver.serving.id_list_cache import IdListCache
from psrt.pserver.serving.parts import DensePush, parse
from psrt.pserver.tables import TableRegistry
from psrt.rpc import pb
from psrt.rpc.wire import Message

_NO_LISTS = IdListCache()
_PAGE_BYTES = 64 << 20  # of one EXPORT reply, whatever number of rows the caller asks for


def export(tables: TableRegistry, asked: pb.Export) -> Message:
    """A page of the rows of a sparse table."""
    table = tables.sparse(asked.table)
    if asked.max_rows == 0:
        raise WireError(
            f"EXPORT of table {asked.table!r} asks for pages of 0 rows; it was refused.",
            hint="Ask for 1 row a page or more.",
        )
    limit = max(1, _PAGE_BYTES // (8 + 4 * table.spec.width))
    ids, rows, cursor = table.export(asked.cursor, min(asked.max_rows, limit))
    return Message(pb.Header(export_reply=pb.ExportReply(next_cursor=cursor)), [ids, rows])


def give(tables: TableRegistry, message: Message) -> Message:
    """Set dense blocks that were never updated; others stay as they are, so a call may repeat."""
    parts = parse(tables, _NO_LISTS, message)
    if parts.pulls or not all(isinstance(push, DensePush) for push in parts.pushes):
        raise WireError(
            "GIVE takes values of dense blocks only, and was sent other parts; nothing was set.",
            hint="Rows of sparse tables come from a cut or a warm start.",
        )
    for push in parts.pushes:
        assert isinstance(push, DensePush)
        push.table.begin_with(push.gradient)
    return Message(pb.Header())


def shrink(tables: TableRegistry, upkeep: Upkeep, header: pb.Header) -> Message:
    """Drop expired rows of sparse tables; returns the number and bytes dropped of each."""
    asked = header.shrink
    names = [tables.sparse(name).spec.name for name in asked.tables]
    dropped = upkeep.shrink(names, asked.number, asked.dry_run, header.trainer)
    found = [
        pb.Dropped(table=name, rows=found.rows, bytes=found.bytes)
        for name, found in dropped.items()
    ]
    return Message(pb.Header(shrink_reply=pb.ShrinkReply(tables=found)))
