"""What a communicator promises the trainer, whichever mode it runs in.

One thread, the training thread, calls all methods but `offer`, in this order:

    dense = start()                     parameters as the pservers hold them
    rows = pull_rows(first batch)
    for each step:
        begin(ids of the next batch)    may already pull them while this step computes
        offer(name, gradient)           perhaps, for each gradient as soon as it is final
        pulled = finish(gradients)      hand over; receive what the next step needs
    dense = stop()                      everything queued is applied; last parameters

Ownership: ids given to `begin` stay unchanged until `finish` has returned. Gradients belong to the
executor, which overwrites them in its next run; a communicator that still needs them after `finish`
has copied them. Dense arrays of a `Pulled` belong to the communicator and stay unchanged until the
next but one `finish` (and as long as no two newer sets were handed out); row arrays belong to the
caller.

A failure of a background thread is raised, as itself, by the next call.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from psrt.core.counters import Counters
from psrt.core.tensors import SelectedRows
from psrt.core.types import F32, I64

Gradient: TypeAlias = F32 | SelectedRows
Gradients: TypeAlias = Mapping[str, Gradient]

Versions: TypeAlias = Mapping[tuple[int, str], int]
"""(number of the endpoint, table) → version of the table when it was last pulled."""


@dataclass(frozen=True)
class Pulled:
    """What a step brought back.

    `dense` holds whole parameters by name, and is empty when nothing newer has arrived; `rows`
    holds (n, width) rows per table, in the order of the ids given to `begin`.
    """

    dense: dict[str, F32] = field(default_factory=dict)
    rows: dict[str, F32] = field(default_factory=dict)


class Timeline(Protocol):
    """Who wants to know what each thread of a communicator does when."""

    def span(self, name: str, category: Literal["communicate"], /) -> AbstractContextManager[None]:
        """The calling thread does `name` inside: a call to a pserver, or a wait for one."""
        ...


class Communicator(Protocol):
    @property
    def counters(self) -> Counters: ...

    def watch(self, timeline: Timeline | None) -> None:
        """Tell `timeline` of every call and every wait from now on; None tells nobody."""
        ...

    def start(self, timeout_s: float) -> dict[str, F32]:
        """Reach all pservers, register the tables and pull every dense parameter."""
        ...

    def pull_rows(self, wanted: Mapping[str, I64]) -> dict[str, F32]:
        """Rows of distinct ids per table, now."""
        ...

    def begin(self, wanted: Mapping[str, I64]) -> None:
        """Announce the distinct ids per table that the next step needs."""
        ...

    def finish(self, gradients: Gradients) -> Pulled:
        """Hand over the gradients of this step and receive what the next one needs.

        In Sync, no gradients at all means: keep the round going, but do not average me in.
        """
        ...

    def offer(self, name: str, gradient: Gradient) -> None:
        """A gradient of the running step is final; `finish` gets it too.

        Any thread of the executor calls it, while the rest of the step is still computed. Modes
        that can send it early do; the others ignore it.
        """
        ...

    def flush(self, timeout_s: float, final: bool = False) -> dict[str, F32]:
        """Wait until all gradients handed over are applied; pull the dense parameters.

        `final` says that this trainer hands over nothing more, so nobody need wait for it.
        """
        ...

    def stop(self, timeout_s: float) -> dict[str, F32]:
        """`flush`, then tell every pserver that this trainer has completed; idempotent."""
        ...

    def close(self) -> None:
        """End the threads without a word to the pservers, for a trainer that failed."""
        ...
