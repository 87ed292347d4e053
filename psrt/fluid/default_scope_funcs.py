"""`fluid.default_scope_funcs`: a stack of scopes, each below the one before."""

from __future__ import annotations

from collections.abc import Callable

from psrt.fluid.running import FluidScope, ScopeVar

_scopes: list[FluidScope] = []


def get_cur_scope() -> FluidScope:
    """Return the scope on top; the first one is made by the first call."""
    if not _scopes:
        _scopes.append(FluidScope())
    return _scopes[-1]


def enter_local_scope() -> None:
    """Put a new scope on top, below the present one."""
    _scopes.append(get_cur_scope().new_scope())


def leave_local_scope() -> None:
    """Drop the scope on top."""
    _scopes.pop()


def var(name: str) -> ScopeVar:
    """Return the var of this name in the scope on top, made if it is not there."""
    return get_cur_scope().var(name)


def find_var(name: str) -> ScopeVar | None:
    """Return the var of this name, or None."""
    return get_cur_scope().find_var(name)


def scoped_function(func: Callable[[], object]) -> None:
    """Call a function with a scope of its own on top."""
    enter_local_scope()
    try:
        func()
    finally:
        leave_local_scope()


__all__ = ["enter_local_scope", "find_var", "get_cur_scope", "leave_local_scope"]
__all__ += ["scoped_function", "var"]
