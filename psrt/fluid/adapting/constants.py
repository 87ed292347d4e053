"""Vars that are made of no other: constants and random numbers, in sizes that others may have.

A size is a number, or part of what `layers.shape` made of another var; −1 first is the examples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psrt.core.types import Shape
from psrt.fluid.adapting.sizes import sizes_of
from psrt.fluid.adapting.targets import assign_to
from psrt.fluid.framework import default_main_program
from psrt.fluid.names import Variable, dtype_name
from psrt.graph import layers as psrt_layers
from psrt.graph.ops import ROWS
from psrt.graph.program import Var


def fill_constant(
    shape: Any,
    dtype: Any,
    value: float,
    force_cpu: bool = False,
    out: Variable | None = None,
    name: str | None = None,
) -> Variable:
    """Constant `value` in `shape`; `out` is the var that gets it.

    In the shape of a data var of a fixed size it has as many examples as are fed.
    """
    sizes, like = sizes_of("fill_constant", shape)
    like = like or _fed_as(sizes)
    kind, options = dtype_name(dtype), {"layer_name": name or ""}
    value = int(value) if kind == "int64" else value  # as Fluid, without what is behind the point
    if like is None:
        made = _called(psrt_layers.fill_constant, sizes, kind, float(value), **options)
    else:
        rows = psrt_layers.fill_constant_batch_size_like
        made = _called(rows, like, sizes, kind, float(value), **options)
    return made if out is None else assign_to(out, made)


def _fed_as(sizes: Shape) -> Variable | None:
    """Return the data var that was declared with these sizes, more than one example."""
    program = default_main_program()
    name = program.fixed_batches.get(sizes[0]) if sizes and sizes[0] > 1 else None
    like = None if name is None else program.variable(name)
    return like if like is not None and like.var.shape == (ROWS, *sizes[1:]) else None


def zeros(shape: Any, dtype: Any, force_cpu: bool = False) -> Variable:
    """Zeros of `shape` and `dtype`."""
    return fill_constant(shape, dtype, 0.0)


def ones(shape: Any, dtype: Any, force_cpu: bool = False) -> Variable:
    """Ones of `shape` and `dtype`."""
    return fill_constant(shape, dtype, 1.0)


def one_hot_behind(input: Variable, depth: int, allow_out_of_range: bool = False) -> Variable:
    """One-hot rows of ids 0 to depth − 1 (`fluid.one_hot`): int64 (rows, …) → (rows, …, depth).

    Every id must be within the depth, whatever `allow_out_of_range`.
    """
    return _called(_behind, input, depth)


def _behind(ids: Var, depth: int) -> Var:
    return psrt_layers.one_hot(psrt_layers.unsqueeze(ids, [-1]), depth)


def uniform_random(
    shape: Any, dtype: Any = "float32", min: float = -1.0, max: float = 1.0, seed: int = 0
) -> Variable:
    """Numbers between `min` and `max`, drawn in every step; with a seed equal ones in all steps."""
    sizes, like = sizes_of("uniform_random", shape)
    return _called(psrt_layers.uniform_random, sizes, min, max, seed or None, like)


def gaussian_random(
    shape: Any, mean: float = 0.0, std: float = 1.0, seed: int = 0, dtype: Any = "float32"
) -> Variable:
    """Numbers of a normal distribution, drawn as by `uniform_random`."""
    sizes, like = sizes_of("gaussian_random", shape)
    return _called(psrt_layers.gaussian_random, sizes, mean, std, seed or None, like)


def uniform_random_batch_size_like(
    input: Variable,
    shape: Sequence[int],
    dtype: Any = "float32",
    input_dim_idx: int = 0,
    output_dim_idx: int = 0,
    min: float = -1.0,
    max: float = 1.0,
    seed: int = 0,
) -> Variable:
    """Numbers as of `uniform_random`, whose first size is that of `input`.

    `input_dim_idx` and `output_dim_idx` are 0: psrt has the examples first.
    """
    sizes = (-1, *shape[1:])
    return _called(psrt_layers.uniform_random, sizes, min, max, seed or None, input)


def gaussian_random_batch_size_like(
    input: Variable,
    shape: Sequence[int],
    input_dim_idx: int = 0,
    output_dim_idx: int = 0,
    mean: float = 0.0,
    std: float = 1.0,
    seed: int = 0,
    dtype: Any = "float32",
) -> Variable:
    """Numbers as of `gaussian_random`, see `uniform_random_batch_size_like`."""
    sizes = (-1, *shape[1:])
    return _called(psrt_layers.gaussian_random, sizes, mean, std, seed or None, input)


def _called(function: Any, *args: Any, **options: Any) -> Variable:
    made: Variable = default_main_program().call(function, *args, **options)
    return made


__all__ = ["fill_constant", "gaussian_random", "gaussian_random_batch_size_like", "ones"]
__all__ += ["uniform_random", "uniform_random_batch_size_like", "zeros"]
