"""Vars in lists, tuples and dicts, as functions return them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from psrt.core.errors import ProgramError
from psrt.fluid.names.variable import Variable


def leaves(like: Any, value: Any) -> list[Variable]:
    """Return the vars in a structure that is that of `like`; raises `ProgramError` for another."""
    if isinstance(like, Variable) and isinstance(value, Variable):
        return [value]
    if like is None and value is None:
        return []
    known, parts = _parts(like), _parts(value)
    if known is None or parts is None or known.keys() != parts.keys():
        raise ProgramError(
            "Incompatible return values of true_fn and false_fn in cond: "
            f"{like!r} and {value!r} differ.",
            hint="Let all branches return as many vars, in the same lists, tuples or dicts.",
        )
    return [var for key, part in known.items() for var in leaves(part, parts[key])]


def in_structure(like: Any, vars: Iterator[Variable]) -> Any:
    """Return a structure as `like` with other vars, in the order of `leaves`."""
    if isinstance(like, dict):
        return {key: in_structure(part, vars) for key, part in like.items()}
    if isinstance(like, list | tuple):
        return type(like)([in_structure(part, vars) for part in like])
    return None if like is None else next(vars)


def _parts(value: Any) -> dict[Any, Any] | None:
    """The parts of a list, tuple or dict by place; None for what has none."""
    if isinstance(value, dict):
        return value
    return dict(enumerate(value)) if isinstance(value, list | tuple) else None


__all__ = ["in_structure", "leaves"]
