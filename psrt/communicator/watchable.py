"""The part of a communicator's protocol for those who watch it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, Protocol

from psrt.core.counters import Counters


@dataclass(frozen=True)
class Backlog:
    """Work of a trainer that is on its way.

    `gradients` wait to be pushed; `steps` have ended and are not in the parameters yet; `pushes`,
    of `push_bytes`, are kept until they are durable.
    """

    gradients: int = 0
    steps: int = 0
    pushes: int = 0
    push_bytes: int = 0


class Timeline(Protocol):
    """A recorder of what each thread of a communicator does."""

    def span(self, name: str, category: Literal["communicate"], /) -> AbstractContextManager[None]:
        """Record that the calling thread does `name` inside: a call to a pserver, or a wait."""
        ...


class Watchable(Protocol):
    """A communicator as seen by those who watch it."""

    @property
    def counters(self) -> Counters: ...

    def watch(self, timeline: Timeline | None) -> None:
        """Record every call and every wait in `timeline` from now on; None stops that."""
        ...

    def backlog(self) -> Backlog:
        """Return what is on its way at this moment; any thread may ask."""
        ...
