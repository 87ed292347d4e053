"""What an executor asks of the outside: it knows no network.

The trainer plugs in a communicator, a collective or a fake. All calls come from the thread that
called `Executor.run`, except those of `OnGradient`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

from psrt.core.tensors import SelectedRows
from psrt.core.types import F32, I64, Array

Gradient: TypeAlias = Array | SelectedRows

OnGradient: TypeAlias = Callable[[str, Gradient], None]
"""Told the name of a parameter and its gradient as soon as that is final, by whichever thread made
it. The array is the executor's, as those of `GradSink.push` are."""


class GradSink(Protocol):
    """Where gradients go after each backward."""

    def push(self, gradients: Mapping[str, Gradient]) -> None:
        """Gradients by parameter name.

        The arrays are the executor's: they stay as they are until the backward after the next one.
        Copy what is kept longer, a queue of several steps for instance.
        """
        ...


class ParamSource(Protocol):
    """Where rows of sparse tables come from when none were bound for a step."""

    def pull_rows(self, table: str, ids: I64) -> F32:
        """Rows (n, width) of the distinct `ids` (n,); the row of a padding id is zeros."""
        ...
