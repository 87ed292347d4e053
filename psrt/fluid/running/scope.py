"""Scopes by Fluid's names: arrays by var name, and what is at work over them.

In Fluid the state of optimizers lies in the scope. Here it belongs to executors, so the scope keeps
these: every `fluid.Executor` over a scope goes on where the last one stood.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from psrt.core.types import Array
from psrt.executor.memory import Scope as Arrays


class FluidScope(Arrays):
    """`runs` holds, by program or compiled program, what runs it over this scope."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: dict[Any, Any] = {}

    def find_var(self, name: str) -> ScopeVar | None:
        """The var of this name, or None."""
        return ScopeVar(self, name) if name in self else None

    def var(self, name: str) -> ScopeVar:
        """The var of this name, which may hold nothing yet."""
        return ScopeVar(self, name)

    def new_scope(self) -> FluidScope:
        """A scope of its own: psrt's do not look into each other."""
        return FluidScope()

    def drop_kids(self) -> None:
        """There are none."""


Scope = FluidScope  # its name in PaddlePaddle


class ScopeVar:
    """One place of a scope."""

    def __init__(self, scope: FluidScope, name: str) -> None:
        self._scope, self._name = scope, name

    def name(self) -> str:
        return self._name

    def get_tensor(self) -> Tensor:
        return Tensor(self._scope, self._name)


class Tensor:
    """The array at one place of a scope; `np.array(tensor)` copies it."""

    def __init__(self, scope: FluidScope, name: str) -> None:
        self._scope, self._name = scope, name

    def set(self, array: Any, place: Any = None) -> None:
        """Put a copy of `array` here, as the dtype of what was here."""
        dtype = self._scope[self._name].dtype if self._name in self._scope else None
        self._scope[self._name] = np.array(array, dtype)

    def shape(self) -> list[int]:
        return list(self._array.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        array = self._array if dtype is None else self._array.astype(dtype)
        return array.copy() if copy is not False else array

    def __getitem__(self, index: Any) -> Any:
        return self._array[index]

    def __len__(self) -> int:
        return len(self._array)

    @property
    def _array(self) -> Array:
        return self._scope[self._name]


_scopes: list[FluidScope] = [FluidScope()]


def global_scope() -> FluidScope:
    """Where programs run unless another scope is given."""
    return _scopes[-1]


def chosen(scope: FluidScope | None) -> FluidScope:
    """The scope given, which may be empty and so false, or the global one."""
    return global_scope() if scope is None else scope


@contextmanager
def scope_guard(scope: FluidScope) -> Iterator[None]:
    """Make `scope` the global one in the block."""
    _scopes.append(scope)
    try:
        yield
    finally:
        _scopes.pop()


__all__ = ["FluidScope", "Scope", "global_scope", "scope_guard"]
