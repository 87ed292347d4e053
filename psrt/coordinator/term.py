"""Terms: of two processes that both coordinate the cuts in a directory, the later one does.

A process takes the next term before it lists the cuts that it goes on from. It compares the newest
term with its own before it writes a manifest, and again before it reports the cut complete. So a
cut that was ever reported complete was in the directory when a successor listed it, and a process
that was stopped, and goes on behind its successor, reports none.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Term:
    """The turn of one coordinator; `owner` is a random text of its process."""

    number: int
    owner: str


def following(newest: Term | None, owner: str) -> Term:
    """The term of a process that takes over from that of the newest one, None = no one yet."""
    return Term(1 if newest is None else newest.number + 1, owner)


def superseded(mine: Term, newest: Term | None) -> str:
    """The reason for which the process of term `mine` writes no more manifests; empty = none."""
    if newest == mine:
        return ""
    if newest is None:
        return f"the file of its term {mine.number} has been deleted"
    return f"another process has coordinated its cuts since term {newest.number}"
