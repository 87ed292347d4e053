"""Old names of executors, which work and warn; docs/reference/deprecations.md lists them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import TypeAlias

from psrt.executor.ports import Gradient, GradSink

OnGradient: TypeAlias = Callable[[str, Gradient], None]


class CallbackSink:
    """A sink that passes early gradients to a function and ignores the rest."""

    def __init__(self, offer: OnGradient) -> None:
        self.offer = offer

    def push(self, gradients: Mapping[str, Gradient]) -> None:
        """Ignore them: the function had each of them."""


class DeprecatedNames:
    """`on_gradient`, the former way to receive gradients early; `sink` replaces it."""

    sink: GradSink | None

    @property
    def on_gradient(self) -> OnGradient | None:
        return self.sink.offer if isinstance(self.sink, CallbackSink) else None

    @on_gradient.setter
    def on_gradient(self, on_gradient: OnGradient | None) -> None:
        text = "on_gradient is deprecated since 0.2: set `sink` to an object with offer and push."
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        self.sink = None if on_gradient is None else CallbackSink(on_gradient)
