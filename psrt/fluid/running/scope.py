"""Scopes by Fluid's names: arrays by var name, and the runs over them.

In Fluid the scope holds optimizer state. Here executors hold it, so the scope keeps them: every
`fluid.Executor` over a scope continues the training of the last one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from psrt.core.errors import ProgramError
from psrt.core.types import Array
from psrt.executor.memory import Scope as Arrays
from psrt.fluid.running.lod_tensor import LoDTensor
from psrt.fluid.running.values import Feed
from psrt.graph.program import Program


class FluidScope(Arrays):
    """Fluid's `Scope`; `runs` holds, by program or compiled program, its run over this scope.

    `steps` are those that each program has run.
    """

    def __init__(self, parent: FluidScope | None = None) -> None:
        super().__init__()
        self.runs: dict[Any, Any] = {}
        self._parent = parent
        self._vars: dict[str, ScopeVar] = {}
        self.steps: Counter[Any] = Counter()

    def find_var(self, name: str) -> ScopeVar | None:
        """Return the var of this name, here or in the scopes above, or None."""
        if name in self or name in self._vars:
            return self.var(name)
        return None if self._parent is None else self._parent.find_var(name)

    def var(self, name: str) -> ScopeVar:
        """Return the var of this name here, which may hold nothing yet."""
        if name not in self._vars:
            self._vars[name] = ScopeVar(self, name)
        return self._vars[name]

    def erase(self, names: Sequence[str]) -> None:
        """Drop vars, with their arrays."""
        for name in names:
            self._vars.pop(name, None)
            self._arrays.pop(name, None)

    def new_scope(self) -> FluidScope:
        """Return an empty scope below this one: it finds the vars of this one, too.

        Programs run over it alone.
        """
        return FluidScope(self)

    def drop_kids(self) -> None:
        """Without effect: a scope below this one lives as long as it is used."""


Scope = FluidScope  # its name in PaddlePaddle


class ScopeVar:
    """One name of a scope, of an array or of one whole number."""

    def __init__(self, scope: FluidScope, name: str) -> None:
        self._scope, self._name = scope, name
        self._number: int | None = None

    def is_int(self) -> bool:
        """Return whether it holds a number of `set_int`."""
        return self._number is not None

    def set_int(self, value: int) -> None:
        """Store a number."""
        self._number = int(value)

    def get_int(self) -> int:
        """Return the number; raises `ProgramError` without one."""
        if self._number is None:
            raise ProgramError(f"{self._name} holds no number.", hint="Call its set_int first.")
        return self._number

    def name(self) -> str:
        """Return the name."""
        return self._name

    def get_tensor(self) -> ScopeTensor:
        """Return the array, which may be set."""
        return ScopeTensor(self._scope, self._name)


class ScopeTensor(LoDTensor):
    """The array of one name of a scope."""

    def __init__(self, scope: FluidScope, name: str) -> None:
        super().__init__()
        self._scope, self._name = scope, name

    def set(self, array: Any, place: Any = None) -> None:
        """Store a copy of `array`, in the dtype of the array before; `place` has no effect."""
        dtype = self._scope[self._name].dtype if self._name in self._scope else None
        self._scope[self._name] = np.array(array, dtype)

    def __bool__(self) -> bool:
        """Return whether the scope holds an array of this name."""
        return self._name in self._scope

    @property
    def _array(self) -> Array:
        return self._scope[self._name]


def keep_fed(
    feed: Feed | Sequence[Feed] | None, graph: Program, scope: FluidScope, on_pservers: bool
) -> Any:
    """Put what is fed for parameters and other vars of the scope there; returns the other feeds.

    Raises `ProgramError` for a parameter that is `on_pservers`, or whose shape does not fit.
    """
    if feed is None or not isinstance(feed, Mapping):
        return feed and [keep_fed(part, graph, scope, on_pservers) for part in feed]
    kinds = {name: graph.vars[name].kind for name in feed if name in graph.vars}
    kept = [name for name, kind in kinds.items() if kind in ("parameter", "state")]
    for name in kept:
        if on_pservers and kinds[name] == "parameter":
            raise ProgramError(
                f"{name} was fed, but pservers hold it, so the run did not begin.",
                hint="Feed it before the program is transpiled, or let servers begin with a saved "
                "model: fleet.init_server(directory).",
            )
        var, array = graph.vars[name], np.asarray(feed[name])
        if array.size != math.prod(var.shape):
            raise ProgramError(f"{name} of shape {var.shape} was fed an array of {array.shape}.")
        scope[name] = array.astype(var.dtype).reshape(var.shape)
    return {name: value for name, value in feed.items() if name not in kept}


_scopes: list[FluidScope] = [FluidScope()]


def global_scope() -> FluidScope:
    """Return the scope of programs that are run without another one."""
    return _scopes[-1]


def chosen(scope: FluidScope | None) -> FluidScope:
    """Return `scope`, which may be empty and so falsy, or the global one for None."""
    return global_scope() if scope is None else scope


@contextmanager
def scope_guard(scope: FluidScope) -> Iterator[None]:
    """Make `scope` the global one in the block."""
    _scopes.append(scope)
    try:
        yield
    finally:
        _scopes.pop()


__all__ = ["FluidScope", "Scope", "global_scope", "keep_fed", "scope_guard"]
