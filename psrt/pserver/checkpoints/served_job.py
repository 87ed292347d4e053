"""A file that names the tables which a pserver serves, so that it can recover them when killed.

It is in the directory of cuts while the pserver serves a job, and is deleted when the job ends. A
recovery begins with the newest complete cut that has them, and the local cuts behind it. Before the
first of either, it begins as the job did: initial values are functions, so the file needs names and
decisions only.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psrt.coordinator.term import Term
from psrt.core.errors import PsrtError
from psrt.core.specs import TableSpec, from_plain
from psrt.pserver.checkpoints import delta_files, term_file
from psrt.pserver.checkpoints.saved_cut import Record, SavedCut, complete_cuts, find_cut, open_cut
from psrt.storage import json_file
from psrt.storage.directory import Directory, contents

log = logging.getLogger("psrt.pserver")

FORMAT, VERSION = "psrt served job", 1


@dataclass(frozen=True)
class RecoveredPart:
    """The newest state of pserver number `index`: `cut` has its part alone, `state` its decisions.

    Behind the part are the local cuts that continue it, up to `number`, 0 = none; `newest` is the
    highest number of one, complete or not. `process` is the number of the process that wrote the
    newest of all. `term` is that of the first pserver of a job, which coordinates the cuts. The job
    goes on from the cut with `resized_to` trainers, 0 = as many as before; `began_at` is the cut
    that trainers begin with: at which their number has changed last, or that the job has resumed,
    0 = none.

    If it `is_beginning` there is neither, and `cut` is the whole one that the job resumed, None =
    none. It may have taken values from `warm_start`, by its whole `parameters`.
    """

    cut: SavedCut | None
    incarnation: int
    state: dict[str, Any]
    specs: Sequence[TableSpec]
    index: int
    process: int
    number: int
    newest: int
    term: Term | None = None
    is_beginning: bool = False
    warm_start: str = ""
    parameters: Sequence[TableSpec] = ()
    resized_to: int = 0
    began_at: int = 0


def record(directory: Directory, name: str, incarnation: int, began: Record | None = None) -> None:
    """Write that pserver `name` serves the tables of `incarnation`; a failure is logged.

    `began` are the facts of a local cut at the beginning of the job, with the number of the cut
    that it `resumed`, 0 = none, its `warm_start` and the whole `parameters` of that.
    """
    members = {"incarnation": incarnation} | ({} if began is None else {"began": began})
    data = json_file.encode(FORMAT, VERSION, members)
    try:
        directory.commit(_file(name), data)
    except PsrtError as error:
        log.warning("this pserver could not recover if it were killed: %s", error)


def forget(directory: Directory, name: str) -> None:
    """Delete the file and local cuts, if there are some: the job of pserver `name` has ended.

    The file goes first: a process that is killed in between leaves nothing that one recovers.
    """
    try:
        directory.remove(*directory.names(_file(name)))
        delta_files.remove(directory, name)
    except PsrtError as error:
        log.warning("a later --recover of this pserver may find an ended job: %s", error)


def take_over(directory: Directory, name: str) -> RecoveredPart | None:
    """The state that pserver `name` goes on from, as `find`; the first one begins a term before.

    So it goes on from every cut that its predecessor has ever reported complete. If its disk fails
    now, the term begins with the next cut, and trainers end the job if such a cut is missed.
    """
    found = find(directory, name)
    if found is None or found.index != 0:
        return found
    try:
        term = term_file.take(directory)
    except PsrtError as error:
        log.warning("a predecessor that was only stopped may still complete a cut: %s", error)
        return found
    found = find(directory, name)
    return found and dataclasses.replace(found, term=term)


def find(directory: Directory, name: str) -> RecoveredPart | None:
    """The newest state of the tables that pserver `name` served when it was killed.

    None if it served none, or neither a complete cut nor a local cut has them, and the beginning of
    the job is unknown. Raises `StorageError` for a damaged file.
    """
    if _file(name) not in directory.names(_file(name)):
        return None
    served = json_file.decode(_file(name), contents(directory, _file(name)), FORMAT, VERSION)
    base = _newest_part(directory, served["incarnation"])
    start = place_of(base.parts[0]) if base is not None else None
    records = delta_files.read(directory, name, served["incarnation"])
    behind = delta_files.behind(name, start, records)
    if behind and behind[0]["continues"] == 0:
        base = SavedCut(directory, 0, {}, (behind[0],), ((),))
    if base is None:
        return _beginning(directory, name, served.get("began"))
    last = behind[-1] if behind else base.parts[0]
    own = dataclasses.replace(base, parts=(last,), chains=((*base.chains[0], *behind),))
    specs = [from_plain(each) for each in last["specs"]]
    newest = max(delta_files.newest_number(directory, name), place_of(last)[1])
    number = behind[-1]["number"] if behind else 0
    resized_to = 0 if behind else last.get("resized_to", 0)
    began_at = base.number if resized_to else last.get("began_at", 0)
    process, _ = place_of(last)
    facts = last["incarnation"], last["state"], specs, last["index"]
    return RecoveredPart(
        *(own, *facts, process, number, newest), resized_to=resized_to, began_at=began_at
    )


def _beginning(directory: Directory, name: str, began: Record | None) -> RecoveredPart | None:
    """The state in which a pserver began; None if it is unknown."""
    if began is None:
        return None
    resumed = find_cut(directory, str(began["resumed"])) if began["resumed"] else None
    specs, parameters = (
        [from_plain(each) for each in began[key]] for key in ("specs", "parameters")
    )
    return RecoveredPart(
        *(resumed, began["incarnation"], began["state"], specs, began["index"], began["process"]),
        number=0,
        newest=delta_files.newest_number(directory, name),
        is_beginning=True,
        warm_start=began["warm_start"],
        parameters=parameters,
    )


def place_of(record: Record) -> delta_files.Place:
    """The process that wrote a part or local cut, and the newest local cut it had taken."""
    newest = record["number"] if "number" in record else record.get("local_cut", 0)
    return record.get("process", 1), newest


def _newest_part(directory: Directory, incarnation: int) -> SavedCut | None:
    """The newest complete cut of the tables, with their part alone."""
    for number in reversed(complete_cuts(directory)):
        cut = open_cut(directory, number)
        for part, chain in zip(cut.parts, cut.chains, strict=True):
            if part.get("incarnation") == incarnation:
                return dataclasses.replace(cut, parts=(part,), chains=(chain,))
    return None


def _file(name: str) -> str:
    return f"served-{name}.json"
