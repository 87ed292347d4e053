"""Local cuts as files in the directory of cuts, by number, for each pserver:

    deltas-host-6170/00000012/dense.arrays    blocks of dense parameters that changed
    deltas-host-6170/00000012/table-3.arrays  changed rows of its fourth sparse table
    deltas-host-6170/00000012.json            its tables, files and seals; makes it complete

A pserver recovers from the newest part of a cut and the local cuts behind it, or from a full local
cut and those behind it. Processes of a pserver have rising numbers, and a local cut continues only
what its own process has written: a cut whose part is of a former process may have become complete
after that process was killed, with pushes that its successor never had.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import TypeAlias

from psrt.core.failpoints import reach
from psrt.pserver.checkpoints.local_cut import LocalCut, PointT
from psrt.pserver.checkpoints.part_writer import write_tables
from psrt.pserver.checkpoints.saved_cut import Record
from psrt.storage import json_file
from psrt.storage.directory import Directory, contents
from psrt.storage.failures import damaged
from psrt.storage.pacing import WritePace

log = logging.getLogger("psrt.pserver")

FORMAT, VERSION = "psrt local cut", 1

Place: TypeAlias = tuple[int, int]
"""Number of a process of a pserver, and the newest local cut it had taken."""

_ANY = re.compile(r"(\d{8})(/|\.json)")


def write(
    directory: Directory, name: str, cut: LocalCut[PointT], pace: WritePace | None = None
) -> int:
    """Write a local cut of pserver `name` durably, with the waits of `pace`; returns its bytes.

    Raises `StorageError`, or `TableError` if there was no memory for rows that changed meanwhile.
    """
    reach("delta.taken")
    files = write_tables(directory, _arrays(name, cut.number), cut.dense, cut.sparse, pace)
    members = {"number": cut.number, "continues": cut.continues, "files": files, **cut.facts}
    reach("delta.before_record")
    directory.commit(_record(name, cut.number), json_file.encode(FORMAT, VERSION, members))
    reach("delta.after_record")
    return sum(file["seal"]["bytes"] for file in files)


def read(directory: Directory, name: str, incarnation: int) -> list[Record]:
    """The records of the complete local cuts of these tables, in order.

    Raises `StorageError` for a damaged record. Logs which local cuts were never completed: trainers
    still have their pushes.
    """
    found: dict[int, bool] = {}
    for file, number in _numbers(directory, name):
        found[number] = found.get(number, False) or file.endswith(".json")
    for number in (number for number, is_complete in found.items() if not is_complete):
        log.warning("local cut %d of %s was not completed and is ignored", number, name)
    names = [_record(name, number) for number in sorted(found) if found[number]]
    records = [json_file.decode(each, contents(directory, each), FORMAT, VERSION) for each in names]
    return [record for record in records if record["incarnation"] == incarnation]


def behind(name: str, part: Place | None, records: Sequence[Record]) -> list[Record]:
    """The records that are restored behind a part of a cut, None = there is none.

    If the first of them is full, it replaces the part. Raises `StorageError` if one is missing.
    """
    start = (0, 0) if part is None else part
    newer = [record for record in records if _place(record) > start]
    if full := [record for record in newer if record["continues"] == 0]:
        newer = [record for record in newer if _place(record) >= _place(full[-1])]
    elif newer and part is None:
        raise damaged(_record(name, newer[0]["number"]), "there is no full one before it")
    else:
        newer = [record for record in newer if record["process"] == start[0]]
    _check_complete(name, 0 if full else start[1], newer)
    return newer


def newest_number(directory: Directory, name: str) -> int:
    """The highest number that a file of a local cut has, complete or not, 0 = none."""
    return max((number for _, number in _numbers(directory, name)), default=0)


def remove(directory: Directory, name: str, newest: int | None = None) -> None:
    """Delete local cuts up to number `newest`, None = all; their records first."""
    found = _numbers(directory, name)
    names = [file for file, number in found if newest is None or number <= newest]
    for kind in True, False:
        if chosen := [file for file in names if file.endswith(".json") == kind]:
            directory.remove(*chosen)


def _check_complete(name: str, start: int, records: Sequence[Record]) -> None:
    """Raise `StorageError` if a record continues one that is neither there nor in the base."""
    known: set[int] = set()
    for record in records:
        before = record["continues"]
        if before > start and before not in known:
            what = f"it continues local cut {before}, which is missing"
            raise damaged(_record(name, record["number"]), what)
        known.add(record["number"])


def _place(record: Record) -> Place:
    return record["process"], record["number"]


def _numbers(directory: Directory, name: str) -> list[tuple[str, int]]:
    prefix = _prefix(name)
    matches = [(each, _ANY.match(each, len(prefix))) for each in directory.names(prefix)]
    return [(each, int(match[1])) for each, match in matches if match is not None]


def _prefix(name: str) -> str:
    return f"deltas-{name}/"


def _record(name: str, number: int) -> str:
    return f"{_prefix(name)}{number:08d}.json"


def _arrays(name: str, number: int) -> str:
    return f"{_prefix(name)}{number:08d}/"
