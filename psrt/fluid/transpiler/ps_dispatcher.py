"""Dispatchers of blocks to pservers, by Fluid's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class PSDispatcher:
    """Base class of user-defined dispatchers: `dispatch(varlist)` returns endpoints."""

    def __init__(self, pserver_endpoints: Sequence[str]) -> None:
        self._eps = list(pserver_endpoints)
        self._step = 0

    @property
    def eps(self) -> list[str]:
        """The endpoints of the pservers."""
        return self._eps

    def reset(self) -> None:
        """Begin with the first endpoint again."""
        self._step = 0

    def dispatch(self, varlist: Sequence[Any]) -> Sequence[str]:
        """Return an endpoint for each block of one parameter."""
        raise NotImplementedError(f"{type(self).__name__} has no dispatch method.")


RoundRobin = "RoundRobin"
HashName = "HashName"

__all__ = ["HashName", "PSDispatcher", "RoundRobin"]
