"""A file that names the tables which a pserver serves, so that it can recover them when killed.

It lies in the directory of cuts while the pserver serves a job, and is deleted when the job ends.
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
from psrt.pserver.checkpoints import term_file
from psrt.pserver.checkpoints.saved_cut import SavedCut, complete_cuts, open_cut
from psrt.storage import json_file
from psrt.storage.directory import Directory, contents

log = logging.getLogger("psrt.pserver")

FORMAT, VERSION = "psrt served job", 1


@dataclass(frozen=True)
class RecoveredPart:
    """The newest part of one pserver: `cut` has this part alone, `state` its decisions.

    `term` is that of the first pserver of a job, which coordinates the cuts.
    """

    cut: SavedCut
    incarnation: int
    state: dict[str, Any]
    specs: Sequence[TableSpec]
    term: Term | None = None


def record(directory: Directory, name: str, incarnation: int) -> None:
    """Write that pserver `name` serves the tables of `incarnation`; a failure is logged."""
    data = json_file.encode(FORMAT, VERSION, {"incarnation": incarnation})
    try:
        directory.commit(_file(name), data)
    except PsrtError as error:
        log.warning("this pserver could not recover if it were killed: %s", error)


def forget(directory: Directory, name: str) -> None:
    """Delete the file, if there is one: the job of pserver `name` has ended."""
    try:
        directory.remove(*directory.names(_file(name)))
    except PsrtError as error:
        log.warning("a later --recover of this pserver may find an ended job: %s", error)


def take_over(directory: Directory, name: str) -> RecoveredPart | None:
    """The part that pserver `name` goes on from, as `find`; the first one begins a term before.

    So it goes on from every cut that its predecessor has ever reported complete. If its disk fails
    now, the term begins with the next cut, and trainers end the job if such a cut is missed.
    """
    found = find(directory, name)
    if found is None or found.cut.parts[0]["index"] != 0:
        return found
    try:
        term = term_file.take(directory)
    except PsrtError as error:
        log.warning("a predecessor that was only stopped may still complete a cut: %s", error)
        return found
    found = find(directory, name)
    return found and dataclasses.replace(found, term=term)


def find(directory: Directory, name: str) -> RecoveredPart | None:
    """The newest part of the tables that pserver `name` served when it was killed.

    None if it served none, or no complete cut has them. Raises `StorageError` for a damaged file.
    """
    if _file(name) not in directory.names(_file(name)):
        return None
    served = json_file.decode(_file(name), contents(directory, _file(name)), FORMAT, VERSION)
    for number in reversed(complete_cuts(directory)):
        cut = open_cut(directory, number)
        for part, chain in zip(cut.parts, cut.chains, strict=True):
            if part.get("incarnation") == served["incarnation"]:
                own = dataclasses.replace(cut, parts=(part,), chains=(chain,))
                specs = [from_plain(each) for each in part["specs"]]
                return RecoveredPart(own, part["incarnation"], part["state"], specs)
    return None


def _file(name: str) -> str:
    return f"served-{name}.json"
