"""The part of a communicator's protocol for rows that come with the answer of a push."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from psrt.core.types import F32, I64


class ComingRows(Protocol):
    """Rows that the push of a step brings."""

    def wait(self) -> dict[str, F32]:
        """Return the rows (n, width) by table, writable; raises what ended the push."""
        ...


class ReadsBehind(Protocol):
    """A communicator whose pushes may bring rows for a later step than the next one."""

    def read_behind(self, wanted: Mapping[str, I64]) -> ComingRows | None:
        """Ask for rows of distinct ids (n,) per table, read once the running step is applied.

        They come with the answer to its push, if `finish` follows. None if that would not be soon,
        or in a mode without such rows: nothing was asked for.
        """
        ...
