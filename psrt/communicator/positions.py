"""Positions of trainers in their data, as cuts keep them; opaque to communicators and pservers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

Position: TypeAlias = Callable[[], str]
"""Returns where a trainer goes on, as JSON; called by a cut only, on any thread."""


def no_position() -> str:
    """The position of a trainer that keeps none, such as a script's."""
    return ""


class Beginning(NamedTuple):
    """The cut that a job goes on from, 0 = none, and the `position` of this trainer in it.

    `positions` are those of all trainers of the cut, by number, if the job has another number of
    trainers or one of them was lost; otherwise empty. `report` is a text about a warm start, ""
    without one.
    """

    cut: int = 0
    position: str = ""
    positions: tuple[str, ...] = ()
    report: str = ""


BeginsAt: TypeAlias = Callable[[Beginning], Position]
"""Returns where a trainer begins in a job that began so."""
