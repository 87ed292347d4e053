"""Branches: of two groups of layers one is computed, by a condition of the step.

A branch is a loop of at most one turn. The branch that is not taken costs nothing, and its
gradients are 0, also where its formulas have no value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from psrt.core.types import Shape
from psrt.graph.builder import Layer, Vars
from psrt.graph.layers.repeating.loops import Loop, undefined
from psrt.graph.ops import ANY, ROWS, TensorType
from psrt.graph.program import Op, Var

_WIDER = ("bool", "int64", "float32", "float64")


class Branches:
    """Branches under construction: `begin` each, write its layers, then `end` all of them.

    `conditions` has a bool for each, of which one holds in a step. `cond` is the function of two.
    Layers that read tables or keep values beyond a step cannot wait in a branch: where `can_wait`
    is False, they stay in the program unless `end` is called.
    """

    def __init__(self, conditions: Sequence[Var]) -> None:
        self._layer, self._conditions = Layer("cond"), conditions
        self._loops: list[Loop] = []

    def begin(self) -> None:
        """Begin the next branch."""
        self._loops.append(Loop())
        self._loops[-1].begin()

    def can_wait(self, results: Sequence[Var]) -> bool:
        """Return whether all branches may be skipped, and return these vars."""
        of_one = all(var.shape in ((), (1,), (ROWS,)) for var in self._conditions)
        plain = of_one and not any(var.ragged for var in (*self._conditions, *results))
        vars = self._layer.program.vars
        return plain and all(_can_wait(op, vars) for op in self._loops[0].layers())

    def end(self, results: Sequence[Sequence[Var]]) -> list[Var]:
        """End all branches, each of which has such results; returns those of the computed one.

        Results of several types get one: the widest dtype (bool, int64, float32, float64),
        dimensions of 1 in front of fewer ones, and open sizes where they differ.
        """
        types = [
            reduce(common_type, (x.type for x in alike)) for alike in zip(*results, strict=True)
        ]
        return self._end(len(results) - 1, results, types)

    def _end(
        self, last: int, results: Sequence[Sequence[Var]], types: Sequence[TensorType]
    ) -> list[Var]:
        """End the branches up to number `last`; the program ends with the layers of that one."""
        loop, condition = self._loops[last], self._conditions[last]
        with loop.outside():
            before = (
                self._end(last - 1, results, types)
                if last
                else [undefined(found.shape, found.dtype) for found in types]
            )
        after = [self._as(found, var) for found, var in zip(types, results[last], strict=True)]
        both: dict[str, Vars] = {"x": condition, "y": condition}
        never = self._layer.op("logical_xor", both, axis=-1)
        return loop.end([(condition, never), *zip(before, after, strict=True)])[1:]

    def _as(self, found: TensorType, var: Var) -> Var:
        if var.dtype != found.dtype:
            var = self._layer.op("cast", {"x": var}, dtype=found.dtype)
        if var.shape != found.shape:
            return self._layer.op("open_sizes", {"x": var}, shape=found.shape)
        return self._layer.op("assign", {"x": var})


def cond(
    condition: Var, true_fn: Callable[[], Vars], false_fn: Callable[[], Vars]
) -> Var | list[Var]:
    """Compute the layers of one of two functions without arguments; returns what it returns.

    `condition` is one bool. Both return a var, or equally many; `Branches.end` has their types. In
    the program that is differentiated, gradients go through the branch that was computed. Raises
    `ProgramError` for lookups in tables, states and lists in a branch.
    """
    opposite = Layer("cond").op("logical_not", {"x": condition})
    branches = Branches([condition, opposite])
    made = []
    for function in (true_fn, false_fn):
        branches.begin()
        made.append(function())
    results = [[x] if isinstance(x, Var) else [*x] for x in made]
    layer = Layer("cond")
    if len(results[0]) != len(results[1]):
        raise layer.error(f"its branches return {len(results[0])} and {len(results[1])} vars")
    if not branches.can_wait(results[0] + results[1]):
        raise layer.error(
            "a branch looks up rows of a table, changes a state, or returns lists",
            "Compute that before the branches, and choose between results with layers.where.",
        )
    chosen = branches.end(results)
    return chosen[0] if isinstance(made[0], Var) else chosen


def common_type(x: TensorType, y: TensorType) -> TensorType:
    """Return the type that both can be brought to, see `Branches.end`."""
    ndim = max(len(x.shape), len(y.shape))
    pairs = zip(*((1,) * (ndim - len(z.shape)) + z.shape for z in (x, y)), strict=True)
    shape: Shape = tuple(_common_size(a, b, at) for at, (a, b) in enumerate(pairs))
    return TensorType(shape, max(x.dtype, y.dtype, key=_WIDER.index))


def _common_size(x: int, y: int, dimension: int) -> int:
    if x == y and (x != ROWS or not dimension):
        return x
    return ROWS if ROWS in (x, y) and not dimension else ANY


def _can_wait(op: Op, vars: dict[str, Var]) -> bool:
    kept = any(vars[name].kind != "temp" for name in op.writes())
    return op.role == "forward" and "table" not in op.inputs and not kept


__all__ = ["Branches", "cond"]
