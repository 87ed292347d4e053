"""Vars that ops write, counters, and comparisons.

A program of psrt writes each temporary var once. A name that Fluid's program writes again stands
for the newest var; `create_global_var` makes one that keeps its value from step to step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from psrt.fluid.adapting.steps_first import StepsFirst, batch_first
from psrt.fluid.adapting.targets import (
    assign_to,
    in_rows,
    with_column,
    with_dimensions,
    with_whole_labels,
)
from psrt.fluid.framework import FluidProgram, default_main_program
from psrt.fluid.names import Variable, check_sizes, dtype_name, narrow_name, unique_name
from psrt.graph import layers as psrt_layers


def create_tensor(dtype: Any, name: str | None = None, persistable: bool = False) -> Variable:
    """Return a var of `dtype` for ops to write; reading it before raises `ProgramError`.

    A run leaves the value of a `persistable` one in its scope.
    """
    program, kind = default_main_program(), dtype_name(dtype)
    made = program.tensor(kind, name or unique_name.generate("create_tensor"))
    if asked := narrow_name(dtype):
        program.narrow[made.name] = asked
    made.persistable = persistable
    return made


def create_global_var(
    shape: Sequence[int],
    value: float,
    dtype: Any,
    persistable: bool = False,
    force_cpu: bool = False,
    name: str | None = None,
) -> Variable:
    """Return a var of `shape` that keeps its value between steps, `value` from the startup program.

    Ops may write it: `assign`, `increment`. Each trainer has its own. The other arguments have no
    effect. Raises `ArgumentTypeError` for a shape of other than whole numbers.
    """
    check_sizes("create_global_var", shape)
    name = name or unique_name.generate("global_var")
    return _called(psrt_layers.create_state, shape, value, dtype_name(dtype), name)


def assign(input: Any, output: Variable | None = None) -> Variable:
    """Copy `input`, a var or an array, into `output` or a new var."""
    if isinstance(input, Variable):
        made = _called(psrt_layers.assign, input)
    else:
        made = _constant(np.asarray(input))
    return made if output is None else assign_to(output, made)


def concat(input: Any, axis: int = 0, name: str | None = None) -> Any:
    """Join vars along `axis`; that of the examples takes one var, which stays as it is.

    Lists of one element an example are joined with rows of examples as these.
    """
    listed = [input] if isinstance(input, Variable) else list(input)
    if any(isinstance(x, StepsFirst) for x in listed):
        xs = list(batch_first({str(n): x for n, x in enumerate(listed)}).values())
        return StepsFirst(concat(xs, {0: 1, 1: 0}.get(axis, axis), name))
    xs = with_dimensions(in_rows({"input": listed})["input"])
    if all(x.has_column for x in xs):
        xs = [with_column(x) for x in xs]
    if len(xs) == 1:
        return _called(psrt_layers.assign, xs[0])
    made: Variable = default_main_program().call(
        psrt_layers.concat, xs, axis, layer_name=name or ""
    )
    return made


def increment(x: Variable, value: float = 1.0, in_place: bool = True) -> Variable:
    """Return x + value; with `in_place`, x is that from here on."""
    made = _called(psrt_layers.scale, x, 1.0, float(value))
    return assign_to(x, made) if in_place else made


def autoincreased_step_counter(
    counter_name: str | None = None, begin: int = 1, step: int = 1
) -> Variable:
    """Return an int64 counter of the runs of the program: `begin` in the first, + `step` in each.

    Calls with one name share it.
    """
    program, name = default_main_program(), counter_name or "@STEP_COUNTER@"
    if program.global_block().has_var(name):
        return program.variable(name)
    counter = create_global_var([1], begin - step, "int64", name=name)
    return increment(counter, step)


def accuracy(
    input: Variable,
    label: Variable,
    k: int = 1,
    correct: Variable | None = None,
    total: Variable | None = None,
) -> Variable:
    """Share of examples whose label is among the `k` highest scores, a float64 scalar.

    `total` gets the number of examples, int64, and `correct` that of the right ones. An `input` of
    one column has class 0 alone: every other label is wrong. Labels of floats are whole numbers.
    """
    pair = in_rows(with_whole_labels({"input": input, "label": label}))
    made = _called(psrt_layers.accuracy, pair["input"], pair["label"], k)
    if total is None and correct is None:
        return made
    sizes = _called(psrt_layers.shape, pair["label"])
    count = _called(psrt_layers.slice, sizes, [0], [0], [1])
    if total is not None:
        assign_to(total, count)
    if correct is not None:
        right = _called(psrt_layers.cast, count, "float64") * made
        assign_to(correct, _called(psrt_layers.cast, _called(psrt_layers.round, right), "int64"))
    return made


def _comparison(name: str) -> Callable[..., Variable]:
    compute = getattr(psrt_layers, name)

    def compare(
        x: Variable, y: Variable, force_cpu: bool | None = None, cond: Variable | None = None
    ) -> Variable:
        pair = in_rows({"x": x, "y": y})
        made = _called(compute, pair["x"], pair["y"])
        return made if cond is None else assign_to(cond, made)

    compare.__name__ = compare.__qualname__ = name
    compare.__doc__ = compute.__doc__
    return compare


less_than = _comparison("less_than")
less_equal = _comparison("less_equal")
greater_than = _comparison("greater_than")
greater_equal = _comparison("greater_equal")
equal = _comparison("equal")
not_equal = _comparison("not_equal")


def _constant(array: Any) -> Variable:
    shape, dtype = array.shape or (1,), dtype_name(array.dtype)
    if array.size and (array == array.flat[0]).all():
        return _called(psrt_layers.fill_constant, shape, dtype, array.flat[0].item())
    return _called(psrt_layers.constant, array.ravel().tolist(), shape, dtype)


def _called(function: Any, *args: Any) -> Variable:
    program: FluidProgram = default_main_program()
    made: Variable = program.call(function, *args)
    return made


__all__ = ["accuracy", "assign", "autoincreased_step_counter", "create_global_var"]
__all__ += [
    "concat",
    "create_tensor",
    "equal",
    "greater_equal",
    "greater_than",
    "increment",
    "less_equal",
]
__all__ += ["less_than", "not_equal"]
