"""The two ports of an executor, which has no network of its own: gradients leave, rows arrive.

The trainer plugs in a communicator; tests plug in fakes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeAlias

from psrt.core.tensors import SelectedRows
from psrt.core.types import F32, I64, Array

Gradient: TypeAlias = Array | SelectedRows


class GradSink(Protocol):
    """The exit of gradients.

    Arrays belong to the executor and stay unchanged until the backward pass after the next one.
    Copy what is kept longer, a queue of several steps for instance.
    """

    def offer(self, name: str, gradient: Gradient) -> None:
        """Take the gradient of one parameter as soon as it is final.

        Called by any thread of the executor while the rest of the step is still computed. A step
        that also updates parameters ("optimize") offers nothing, and neither do Hogwild replicas.
        """
        ...

    def push(self, gradients: Mapping[str, Gradient]) -> None:
        """Take all gradients of a step, by parameter name, in the thread that called `run`."""
        ...


class ParamSource(Protocol):
    """The source of sparse rows that were not bound for a step; every communicator is one."""

    def pull_rows(self, wanted: Mapping[str, I64]) -> Mapping[str, F32]:
        """Return rows (n, width) of the distinct ids (n,) of each table, zeros for a padding id."""
        ...


__all__ = ["GradSink", "Gradient", "ParamSource"]
