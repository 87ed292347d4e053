"""A trainer's part in cuts, as its communicator offers it; the mode decides when it takes part."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol, TypeAlias


def no_position() -> str:
    """The position of a trainer that has not trained yet."""
    return ""


Position: TypeAlias = Callable[[], str]
"""Returns where a trainer goes on, as JSON; called by a cut only, on any thread."""


class Beginning(NamedTuple):
    """The cut that a job goes on from, 0 = none, and the `position` of this trainer in it.

    `positions` are those of all trainers of the cut, by number, if the job has another number of
    trainers or one of them was lost; otherwise empty. `report` is a text about a warm start, ""
    without one. `reached` is what a former process of this trainer gave to `marks`: this one goes
    on there; "" if it begins by itself. `replaces` is True if this job had a former process.
    """

    cut: int = 0
    position: str = ""
    positions: tuple[str, ...] = ()
    report: str = ""
    reached: str = ""
    replaces: bool = False


BeginsAt: TypeAlias = Callable[[Beginning], Position]
"""Returns where a trainer begins in a job that began so."""


class CutParticipant(Protocol):
    """The methods of a communicator about cuts; the training thread calls all but `request_cut`."""

    @property
    def makes_cuts(self) -> bool:
        """True if the job writes cuts; known once `start` has returned."""
        ...

    @property
    def resumed(self) -> Beginning:
        """The cut that the parameters began with; known once `start` has returned."""
        ...

    def begins_at(self, begin: BeginsAt) -> None:
        """Have `start` call `begin` before this trainer can take part in a cut."""
        ...

    def continues_at(self, position: Position) -> None:
        """Record where this trainer goes on once the running step is pushed.

        A cut that contains the step has it. `finish` calls without one keep the last position.
        """
        ...

    def marks(self, reached: str) -> None:
        """Name where the data go on behind the running step, at the start: where they begin.

        A process that takes the place of this one gets it as `Beginning.reached`. A caller that
        marks no step has no lineage: after its process another one begins anew. Geo ignores it.
        """
        ...

    @property
    def taken_cut(self) -> int:
        """The newest cut that this trainer has taken part in, 0 = none."""
        ...

    def request_cut(self, timeout_s: float, behind: int = 0) -> int:
        """Ask for a cut behind cut `behind` and wait until it is complete; returns its number.

        Any thread may call. A trainer that asks for its own steps gives its `taken_cut`: a cut
        under way that it has yet to take part in will have them.

        In Sync it needs a further round: other threads, or other trainers, go on training. Raises
        `JobError` if the cut is given up.
        """
        ...

    def on_cut(self, action: Callable[[int], None]) -> None:
        """Call `action(number)` after this trainer took part in a cut, on any thread."""
        ...

    def at_rest(self) -> AbstractContextManager[None]:
        """A block of the training thread in which it leaves parameters alone, so that a cut of Geo
        may copy them."""
        ...

    def follow_resizes(self) -> None:
        """Take part in changes of the number of trainers; a change ends the part of this process.

        Call it before `start`. Without it a change is given up: for callers that cannot begin anew.
        """
        ...

    @property
    def resized_to(self) -> int:
        """The number of trainers that the job went on with; 0 = the part of this process goes on.

        Waits for a cut under way that changes it. Other methods raise an error once it is set.
        """
        ...

    def is_alone(self) -> None:
        """Declare that all other trainers have completed: in Sync, cuts wait for no round."""
        ...

    def declare_trained(self) -> None:
        """Declare that this trainer pushes nothing more: others do not wait for its computing."""
        ...
