"""Parts of a variable by `x[1]`, `x[:, 2:4]`, `x[..., -1]`."""

from __future__ import annotations

from typing import Any

from psrt.core.errors import ProgramError
from psrt.core.types import Shape
from psrt.graph import layers
from psrt.graph.program import Var

_END = 2**31 - 1


def part_of(x: Var, index: Any) -> Var:
    """Return the elements of `x` at `index`: whole numbers, slices without steps, and `...`.

    A number may be a var, one int64. A whole number takes its dimension away. Raises
    `ProgramError` for other indices, and where the dimension of the examples is cut.
    """
    if x.shape == ():
        x = layers.reshape(x, (1,))
    axes, starts, ends = list[int](), list[int | Var](), list[int | Var]()
    dropped: set[int] = set()
    for axis, each in enumerate(_spread(index, x.shape)):
        if isinstance(each, slice) and each == slice(None):
            continue
        start, end = _range(each, x)
        axes.append(axis)
        starts.append(start)
        ends.append(end)
        if not isinstance(each, slice):
            dropped.add(axis)
    made = layers.slice(x, axes, starts, ends) if axes else layers.assign(x)
    if not dropped:
        return made
    return layers.reshape(made, [s for axis, s in enumerate(made.shape) if axis not in dropped])


def _spread(index: Any, shape: Shape) -> list[Any]:
    """One index for each dimension that is named."""
    given = list(index) if isinstance(index, tuple) else [index]
    if Ellipsis in given:
        at = given.index(Ellipsis)
        given[at : at + 1] = [slice(None)] * (len(shape) - len(given) + 1)
    if len(given) > len(shape):
        raise ProgramError(f"Index {index!r} is for more dimensions than shape {shape} has.")
    return given


def _range(each: Any, x: Var) -> tuple[int | Var, int | Var]:
    """The first position and the one behind the last."""
    if isinstance(each, slice) and each.step in (None, 1):
        return 0 if each.start is None else each.start, _END if each.stop is None else each.stop
    if isinstance(each, Var):
        return each, layers.scale(each, 1.0, 1.0)
    if isinstance(each, int) and not isinstance(each, bool):
        return each, each + 1 if each != -1 else _END
    raise ProgramError(
        f"{x.name} was indexed with {each!r}.",
        hint="Give whole numbers, slices without steps, or `...`; layers.gather takes rows by ids.",
    )


__all__ = ["part_of"]
