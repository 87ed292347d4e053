"""The file of the newest term in a directory of cuts: who coordinates them."""

from __future__ import annotations

import secrets
from typing import Any

from psrt.coordinator.term import Term, following, superseded
from psrt.core.errors import ErrorCode, StorageError
from psrt.storage import json_file
from psrt.storage.directory import Directory, contents

FORMAT, VERSION = "psrt coordinator", 1
NAME = "coordinator.json"


class SupersededError(StorageError):
    """Another process coordinates the cuts in the directory."""


def take(directory: Directory) -> Term:
    """Begin the next term; from then on an earlier coordinator reports no cut complete."""
    mine = following(newest(directory), secrets.token_hex(8))
    _commit(directory, mine)
    return mine


def close(directory: Directory, mine: Term, newest_cut: int) -> None:
    """Record that the coordinator of term `mine` has ended, and has decided all its cuts.

    `newest_cut` is the newest of them. Raises `SupersededError` like `check`.
    """
    check(directory, mine)
    _commit(directory, mine, ended_at=newest_cut)


def has_decided(directory: Directory, number: int) -> bool:
    """True if the newest coordinator has ended and had decided cut `number`: it is complete, or
    never will be."""
    found = _members(directory)
    return found is not None and found.get("ended_at", 0) >= number


def newest(directory: Directory) -> Term | None:
    """The newest term, None if there is none; raises `StorageError` for a damaged file."""
    found = _members(directory)
    return None if found is None else Term(found["term"], found["owner"])


def check(directory: Directory, mine: Term) -> None:
    """Raise `SupersededError` if another process has begun a term since."""
    if why := superseded(mine, newest(directory)):
        raise SupersededError(
            f"{directory.location} takes no more cuts from this pserver: {why}. Nothing was "
            "deleted, and this pserver makes no more cuts.",
            code=ErrorCode.STORAGE_FAILED,
            hint="Give each job a directory of its own; end a pserver before another one takes its "
            "place.",
        )


def _members(directory: Directory) -> dict[str, Any] | None:
    if NAME not in directory.names(NAME):
        return None
    return json_file.decode(NAME, contents(directory, NAME), FORMAT, VERSION)


def _commit(directory: Directory, mine: Term, **ended: int) -> None:
    members = {"term": mine.number, "owner": mine.owner, **ended}
    directory.commit(NAME, json_file.encode(FORMAT, VERSION, members))
