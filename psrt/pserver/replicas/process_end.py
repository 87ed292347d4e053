"""The decision whether a process of a pair has anything left to serve or to back up; pure.

    the home part, or one served for another, runs ──▶ goes on
    all that it served have ended                  ──▶ Ends
    it serves none: copies have their end          ──▶ Lingers, and Ends once they are over
                    a copy has the error of the job ──▶ Ends with it

A process that was started again serves none, and waits for copies of all its parts: trainers stay
until these have their end. It outlasts the pservers that serve them, which may be killed before
their trainers know.
"""

from __future__ import annotations

import enum
from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from psrt.core.errors import PsrtError


class Home(enum.Enum):
    """State of the part that a process is the home of."""

    UNUSED = "no trainer has registered"
    SERVED = "served here"
    ENDED = "all its trainers have completed"
    FENCED = "served by the other pserver of the pair"


class CopyEnd(Protocol):
    """A part that this process keeps a copy of, as far as its end goes."""

    @property
    def has_ended(self) -> bool:
        """True once all trainers of the part have completed."""
        ...

    @property
    def is_over(self) -> bool:
        """True once its trainers will not ask for anything again."""
        ...

    @property
    def failure(self) -> PsrtError | None:
        """The error that has ended the job where the part is served."""
        ...


@dataclass(frozen=True)
class Ends:
    """End the process, with the error of its job if there is one."""

    error: PsrtError | None = None


@dataclass(frozen=True)
class Lingers:
    """End the process later: trainers may still depose the pserver that serves a part."""


ProcessEnd: TypeAlias = Ends | Lingers | None


def end_of(
    home: Home, served_run: Collection[bool], copies: Collection[CopyEnd], has_all_copies: bool
) -> ProcessEnd:
    """The end of a process; None = it goes on.

    `served_run` has for each part that is served for another whether it still runs. `copies` are
    those of the other parts of the process, `has_all_copies` = none of them is missing.
    """
    if home is Home.SERVED or any(served_run):
        return None
    if home is Home.ENDED or served_run:
        return Ends()
    if (failure := next((copy.failure for copy in copies if copy.failure), None)) is not None:
        return Ends(failure)  # nobody is left to serve anything
    if not (copies and has_all_copies and all(copy.has_ended for copy in copies)):
        return None
    return Ends() if all(copy.is_over for copy in copies) else Lingers()
