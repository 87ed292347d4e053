"""The file of the newest term in a directory of cuts: who coordinates them."""

from __future__ import annotations

import secrets

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
    members = {"term": mine.number, "owner": mine.owner}
    directory.commit(NAME, json_file.encode(FORMAT, VERSION, members))
    return mine


def newest(directory: Directory) -> Term | None:
    """The newest term, None if there is none; raises `StorageError` for a damaged file."""
    if NAME not in directory.names(NAME):
        return None
    found = json_file.decode(NAME, contents(directory, NAME), FORMAT, VERSION)
    return Term(found["term"], found["owner"])


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
