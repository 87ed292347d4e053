"""The protocol between a trainer and the communicator of its mode.

The training thread calls all methods except `offer`, in this order:

    dense = start()                     parameters as the pservers hold them
    rows = pull_rows(first batch)
    for each step:
        begin(ids of the next batch)    may already pull them while this step computes
        offer(name, gradient)           for each gradient, as soon as it is final
        pulled = finish(gradients)      push; receive parameters and rows of the next step
    dense = stop()                      apply everything queued; last parameters

Ownership: ids given to `begin` stay unchanged until `finish` has returned. Gradients belong to the
executor, which overwrites them in its next run; a communicator that needs them after `finish`
copies them. Dense arrays of a `Pulled` belong to the communicator and stay unchanged until the
`finish` after the next (and as long as no two newer sets were returned); row arrays belong to the
caller.

The next call raises the error of a background thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from psrt.communicator.cut_participant import (
    Beginning,
    BeginsAt,
    CutParticipant,
    Position,
    no_position,
)
from psrt.communicator.reads_behind import ComingRows, ReadsBehind
from psrt.communicator.watchable import Backlog, Timeline, Watchable
from psrt.core.tensors import SelectedRows
from psrt.core.types import F32, I64

Gradient: TypeAlias = F32 | SelectedRows
Gradients: TypeAlias = Mapping[str, Gradient]

Versions: TypeAlias = Mapping[tuple[int, str], int]
"""(number of the endpoint, table) → version of the table when it was last pulled."""


@dataclass(frozen=True)
class Pulled:
    """Parameters and rows that a step received.

    `dense` holds whole parameters by name, and is empty when nothing newer has arrived; `rows`
    holds (n, width) rows per table, in the order of the ids given to `begin`.
    """

    dense: dict[str, F32] = field(default_factory=dict)
    rows: dict[str, F32] = field(default_factory=dict)


class Communicator(CutParticipant, ReadsBehind, Watchable, Protocol):
    """Moves gradients up and parameters down, in one communication mode."""

    one_call_step: bool
    """True if `finish` is one call that also returns the rows named by `begin`. A caller can then
    hold gradients back until it has its next batch, and saves a round trip."""

    def start(self, timeout_s: float) -> dict[str, F32]:
        """Reach all pservers, register the tables and pull every dense parameter."""
        ...

    def pull_rows(self, wanted: Mapping[str, I64]) -> dict[str, F32]:
        """Return rows (n, width) of the distinct ids (n,) of each table, now."""
        ...

    def begin(self, wanted: Mapping[str, I64]) -> None:
        """Announce the distinct ids per table that the next step needs."""
        ...

    def finish(self, gradients: Gradients) -> Pulled:
        """Push the gradients of this step and receive what the next one needs.

        In Sync, an empty mapping closes the round without a share in its average.
        """
        ...

    def offer(self, name: str, gradient: Gradient) -> None:
        """Take a final gradient of the running step; `finish` gets it too.

        Any thread of the executor calls it, while the rest of the step is still computed. Modes
        that can send it early do; the others ignore it.
        """
        ...

    def use_rates(self, rates: Mapping[str, float], sums: bool = False) -> None:
        """Send rates by parameter with all pushes from now on, queued ones included.

        Parameters that are not named keep theirs. With `sums`, rounds of Sync add their gradients
        up, in place of the mean.
        """
        ...

    def flush(self, timeout_s: float, final: bool = False) -> dict[str, F32]:
        """Wait until all pushed gradients are applied; return the dense parameters.

        `final` declares that this trainer pushes nothing more, so no other trainer waits for it.
        """
        ...

    def stop(self, timeout_s: float, interrupted: bool = False) -> dict[str, F32]:
        """Flush, then report to every pserver that this trainer has completed; idempotent.

        One that was `interrupted` reports that it leaves instead: it has not completed.
        """
        ...

    def close(self) -> None:
        """End the threads and report nothing to the pservers, for a trainer that failed."""
        ...


__all__ = ["Backlog", "Beginning", "BeginsAt", "ComingRows", "Communicator", "CutParticipant"]
__all__ += ["Gradient", "Gradients", "Position", "Pulled", "Timeline", "Versions", "no_position"]
