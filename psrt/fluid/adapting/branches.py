"""Branches: `cond`, `case`, `switch_case`, `Switch` and `IfElse`.

The branch that is taken is computed, and no other, if branches only return what they compute.
Branches that write vars from before them, look up rows or keep statistics are all computed, since a
program of psrt is one list of ops: `where` takes the values of the one whose condition holds, and a
var keeps its value unless it holds. Gradients flow into the branch that was taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from psrt.core.errors import ProgramError
from psrt.fluid.adapting.targets import guarded, plain_condition, where
from psrt.fluid.framework import default_main_program
from psrt.fluid.names import Variable, in_structure, leaves, unwrapped
from psrt.graph import layers as psrt_layers

Branch: TypeAlias = Callable[[], Any]


def cond(
    pred: Variable,
    true_fn: Branch | None = None,
    false_fn: Branch | None = None,
    name: str | None = None,
) -> Any:
    """Return what `true_fn` returns where the bool `pred` is True, else what `false_fn` does.

    Both return vars, or lists, tuples or dicts of such in one structure, or None. Vars may differ
    in dtype and shape, see `psrt.layers.Branches`. Raises `ProgramError` for structures that
    differ, and `TypeError` for what is no function, as Fluid does.
    """
    _check_callable("true_fn", "cond", true_fn)
    _check_callable("false_fn", "cond", false_fn)
    return _branched([pred, _not(pred)], [true_fn or _nothing, false_fn or _nothing])


def case(
    pred_fn_pairs: Sequence[tuple[Variable, Branch]],
    default: Branch | None = None,
    name: str | None = None,
) -> Any:
    """Return the result of the first pair whose condition holds, else of `default`.

    Without a default it is that of the last pair. Raises `TypeError` as Fluid does.
    """
    pairs = _checked_pairs(pred_fn_pairs)
    _check_callable("default", "case", default)
    if default is None:
        *pairs, (_, default) = pairs
    if not pairs:
        return default()
    return _branched(_one_holds([pred for pred, _ in pairs]), [*(fn for _, fn in pairs), default])


def switch_case(
    branch_index: Variable,
    branch_fns: Sequence[Any] | dict[int, Branch],
    default: Branch | None = None,
    name: str | None = None,
) -> Any:
    """Return the result of the branch of this number, else of `default`, or of the last one.

    Raises `TypeError` and `ValueError` as Fluid does.
    """
    if not isinstance(branch_index, Variable) or branch_index.dtype != "int64":
        raise TypeError(f"The branch_index of switch_case is {branch_index!r}, not one integer.")
    pairs = _numbered(branch_fns)
    _check_callable("default", "switch_case", default)
    return case([(branch_index == number, pairs[number]) for number in sorted(pairs)], default)


def _numbered(branch_fns: Any) -> dict[int, Branch]:
    if not isinstance(branch_fns, list | tuple | dict):
        raise TypeError(f"The branch_fns of switch_case are {branch_fns!r}, no list or dict.")
    given = list(branch_fns.items()) if isinstance(branch_fns, dict) else branch_fns
    pairs: dict[int, Branch] = {}
    for place, pair in enumerate(given):
        number, branch = (
            pair if isinstance(pair, tuple | list) and len(pair) == 2 else (place, pair)
        )
        if not isinstance(number, int):
            raise TypeError(f"A branch of switch_case has the number {number!r}, not an integer.")
        if number in pairs:
            raise ValueError(f"Two branches of switch_case have the number {number}.")
        _check_callable(f"branch {number}", "switch_case", branch)
        pairs[number] = branch
    return pairs


def _checked_pairs(pairs: Any) -> Sequence[tuple[Variable, Branch]]:
    if not isinstance(pairs, list | tuple):
        raise TypeError(f"The pred_fn_pairs of case are {pairs!r}, no list or tuple.")
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(pair[0], Variable):
            raise TypeError(f"case was given {pair!r}, not a condition and a function.")
        _check_callable("function of a pair", "case", pair[1])
    return pairs


def _check_callable(what: str, layer: str, branch: Any) -> None:
    if branch is not None and not callable(branch):
        raise TypeError(f"The {what} in {layer} must be callable")


class Switch:
    """Cases of which the first one that holds is taken: what it assigns, other cases do not.

    with fluid.layers.Switch() as switch:
        with switch.case(step < warmup):
            fluid.layers.assign(slow, rate)
        with switch.default():
            fluid.layers.assign(fast, rate)
    """

    def __init__(self, name: str | None = None) -> None:
        self._open: Variable | None = None

    def __enter__(self) -> Switch:
        return self

    def __exit__(self, *error: object) -> None:
        """Without effect."""

    @contextmanager
    def case(self, condition: Variable) -> Iterator[None]:
        """Write vars in the block if `condition` holds and no case before did."""
        taken = condition if self._open is None else _and(self._open, condition)
        rest = _not(condition)
        self._open = rest if self._open is None else _and(self._open, rest)
        with guarded(taken):
            yield

    @contextmanager
    def default(self) -> Iterator[None]:
        """Write vars in the block if no case held. Raises `ProgramError` without a case."""
        if self._open is None:
            raise ProgramError("Switch.default was called before any case.")
        with guarded(self._open):
            yield


class IfElse:
    """Examples in two groups: `cond` (rows, 1) of bools is True for those of the true block.

    Both blocks see all examples; the outputs have the rows of the block of each example.
    """

    def __init__(self, cond: Variable, name: str | None = None) -> None:
        self._cond = cond
        self._outputs: dict[bool, list[Variable]] = {True: [], False: []}
        self._inside: bool | None = None

    @contextmanager
    def _block(self, which: bool) -> Iterator[None]:
        self._inside = which
        try:
            yield
        finally:
            self._inside = None

    def true_block(self) -> Any:
        """Begin the block of examples whose condition is True."""
        return self._block(True)

    def false_block(self) -> Any:
        """Begin the block of the other examples."""
        return self._block(False)

    def input(self, x: Variable) -> Variable:
        """Return the rows of `x` in the block."""
        return x

    def output(self, *outs: Variable) -> None:
        """Set what the block returns; raises `ProgramError` outside of a block."""
        if self._inside is None:
            raise ProgramError("IfElse.output was called outside of true_block and false_block.")
        self._outputs[self._inside] += outs

    def __call__(self) -> list[Variable]:
        """Return the outputs; raises `ProgramError` unless both blocks have as many."""
        taken, other = self._outputs[True], self._outputs[False]
        if len(taken) != len(other):
            raise ProgramError(
                f"The blocks of IfElse have {len(taken)} and {len(other)} outputs; psrt takes "
                "each output from one of two.",
                hint="Call output in both blocks with as many vars.",
            )
        return [where(self._cond, a, b) for a, b in zip(taken, other, strict=True)]


def _branched(conditions: Sequence[Variable], functions: Sequence[Branch]) -> Any:
    """Return what the function returns whose condition holds: all but one are False."""
    program = default_main_program()
    before, newest = {*program.graph.vars, *program.tensors}, dict(program.newest)
    branches = program.call(psrt_layers.Branches, list(conditions))
    made = []
    for condition, function in zip(conditions, functions, strict=True):
        with program.written_into():
            branches.begin()
        with guarded(condition):
            made.append(function())
    results = [leaves(made[0], other) for other in made]
    writes = any(name in before and newest.get(name) != var for name, var in program.newest.items())
    returned = [unwrapped(var) for alike in results for var in alike]
    if returned and not writes and branches.can_wait(returned):
        with program.written_into():
            chosen = program.wrapped(branches.end(unwrapped(results)))
        program.newest.clear()
        program.newest.update(newest)
    else:
        chosen = [_first_that_holds(conditions, alike) for alike in zip(*results, strict=True)]
    return in_structure(made[0], iter(chosen))


def _first_that_holds(conditions: Sequence[Variable], values: Sequence[Variable]) -> Variable:
    *others, chosen = values
    for condition, value in reversed([*zip(conditions, others, strict=False)]):
        chosen = where(condition, value, chosen)
    return chosen


def _nothing() -> None:
    """Return nothing: the branch that was not given."""


def _one_holds(conditions: Sequence[Variable]) -> list[Variable]:
    """Return a condition for each: that it is the first to hold; and one that none does."""
    first, *others = conditions
    made, none = [first], _not(first)
    for condition in others:
        made.append(_and(none, condition))
        none = _and(none, _not(condition))
    return [*made, none]


def _not(x: Variable) -> Variable:
    made: Variable = default_main_program().call(psrt_layers.logical_not, x)
    return made


def _and(x: Variable, y: Variable) -> Variable:
    both = plain_condition(x), plain_condition(y)
    made: Variable = default_main_program().call(psrt_layers.logical_and, *both)
    return made


__all__ = ["IfElse", "Switch", "case", "cond", "switch_case"]
