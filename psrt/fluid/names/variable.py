"""Fluid's `Variable`: a user's handle of a var, with operators that append ops.

It holds its program and its name; the program holds everything else. Operators write into the
program of the variable. A scalar has shape `(1,)` here, as in Fluid, though psrt computes it with
shape `()`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from psrt.core.errors import ProgramError
from psrt.core.types import Shape
from psrt.fluid.names.dtypes import VarType
from psrt.fluid.names.indexing import part_of
from psrt.graph import layers
from psrt.graph.ops import ROWS
from psrt.graph.program import Program, Var


class Owner(Protocol):
    """The program of a variable."""

    graph: Program
    builder: Any
    persistables: set[str]

    tensors: dict[str, str]
    lod_levels: dict[str, int]

    def call(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any: ...
    def current(self, name: str) -> str: ...
    def variable(self, name: str) -> Variable: ...
    def global_block(self) -> Any: ...
    def list_vars(self) -> Iterator[Variable]: ...


class Variable:
    """One value of a step, or a parameter; `+ − * / **` and numbers append ops."""

    def __init__(self, program: Owner, name: str) -> None:
        self.program = program
        self.name = name
        self.declared: Shape | None = None
        """The shape of a var of `create_var`, which is fed unless an op writes it first."""
        self.has_column = False
        """True for rows (n, width) that are (n, 1, width) in Fluid: of `fluid.embedding`."""
        self.wants_gradient = False
        """True if `stop_gradient` was set False: backward makes a gradient of data, too."""

    @property
    def var(self) -> Var:
        """The var of psrt's program, the newest of a tensor that ops were assigned to."""
        name = self.program.current(self.name)
        if name not in self.program.graph.vars and self.declared is not None:
            self.program.call(layers.data, *self._as_fed(self.declared))
        if name not in self.program.graph.vars:
            raise ProgramError(
                f"No op has written {self.name} yet, or only one in the block of a loop.",
                hint="Give it to an op as its output: layers.assign(x, output=…). What a loop is "
                "to leave behind exists before it.",
            )
        return self.program.graph.vars[name]

    @property
    def shape(self) -> Shape:
        """The shape; −1 counts examples, or is a size that differs from batch to batch."""
        known = self.program.current(self.name) in self.program.graph.vars
        return shown_shape(self.var.shape) if known or self.declared is None else self.declared

    @property
    def dtype(self) -> str:
        """float32, float64, int64 or bool."""
        return self.program.tensors.get(self.name) or self.var.dtype

    @property
    def type(self) -> VarType:
        """LOD_TENSOR: every var of a psrt program holds a tensor, with a LoD or without."""
        return VarType.LOD_TENSOR

    @property
    def lod_level(self) -> int:
        """1 for a ragged var, any number of elements per example, 2 for lists of such; else 0."""
        return self.program.lod_levels.get(self.name, int(self.var.ragged))

    @property
    def is_data(self) -> bool:
        """True for a var that is fed."""
        return self.var.kind == "data"

    @property
    def grad_name(self) -> str:
        """The name that its gradient has."""
        return grad_var_name(self.name)

    @property
    def block(self) -> Any:
        """The block of the program."""
        return self.program.global_block()

    @property
    def persistable(self) -> bool:
        """True if it outlives a step, or was set to be kept after it."""
        return self.var.kind in ("parameter", "state") or self.name in self.program.persistables

    @persistable.setter
    def persistable(self, value: bool) -> None:
        if value:
            self.program.persistables.add(self.name)
        else:
            self.program.persistables.discard(self.name)

    @property
    def stop_gradient(self) -> bool:
        """True if it has no gradient. Set True, it stops the gradients of what it is computed from;
        data has one if set False. Raises `ProgramError` for a parameter."""
        var = self.var
        if var.kind == "data" and self.wants_gradient:
            return False
        return var.kind in ("data", "state") or not var.type.is_float or var.stop_gradient

    @stop_gradient.setter
    def stop_gradient(self, value: bool) -> None:
        var = self.var
        if var.kind == "parameter" and value:
            raise ProgramError(
                f"stop_gradient of the parameter {self.name} was set to True.",
                hint="Freeze parameters: ParamAttr(trainable=False), or minimize(no_grad_set=…).",
            )
        is_float = var.type.is_float
        self.wants_gradient = not value and is_float and var.kind in ("data", "temp")
        if var.kind == "temp":
            stopped = dataclasses.replace(var, stop_gradient=bool(value))
            self.program.graph.vars[var.name] = stopped

    def astype(self, dtype: str) -> Variable:
        """Return a cast to `dtype`: float32, float64 or int64."""
        return self._made(layers.cast, self, dtype)

    def to_string(self, throw_on_error: bool = True, with_details: bool = False) -> str:
        """Return name and type; the arguments have no effect."""
        return repr(self)

    def __repr__(self) -> str:
        known = self.program.graph.vars.get(self.program.current(self.name))
        return f"Variable({self.name}: {known.type if known else 'not written yet'})"

    # --- operators ---

    def __add__(self, other: Any) -> Variable:
        if isinstance(other, Variable):
            return self._made(layers.elementwise_add, self, self._alike(other))
        return self._scaled(1.0, other)

    def __sub__(self, other: Any) -> Variable:
        if isinstance(other, Variable):
            return self._made(layers.elementwise_sub, self, self._alike(other))
        return self._scaled(1.0, -other)

    def __mul__(self, other: Any) -> Variable:
        if isinstance(other, Variable):
            return self._made(layers.elementwise_mul, self, self._alike(other))
        return self._scaled(other)

    def __truediv__(self, other: Any) -> Variable:
        if isinstance(other, Variable):
            return self._made(layers.elementwise_div, self, self._alike(other))
        if self.var.type.is_float:
            return self._scaled(1.0 / other)
        wide = self.astype("float64")  # whole numbers are rounded towards 0, as in Fluid
        return self._made(layers.elementwise_div, wide, wide._beside(other)).astype(self.dtype)

    def __mod__(self, other: Any) -> Variable:
        return self._made(layers.elementwise_mod, self, self._beside(other))

    def __pow__(self, other: Any) -> Variable:
        if isinstance(other, Variable):
            return self._made(layers.elementwise_pow, self, self._alike(other))
        return self._made(layers.pow, self, float(other))

    def __rsub__(self, other: float) -> Variable:
        return self._scaled(-1.0, other)

    def __rtruediv__(self, other: float) -> Variable:
        return self._made(layers.reciprocal, self) * other

    def __lt__(self, other: Any) -> Variable:
        return self._made(layers.less_than, self, self._beside(other))

    def __le__(self, other: Any) -> Variable:
        return self._made(layers.less_equal, self, self._beside(other))

    def __gt__(self, other: Any) -> Variable:
        return self._made(layers.greater_than, self, self._beside(other))

    def __ge__(self, other: Any) -> Variable:
        return self._made(layers.greater_equal, self, self._beside(other))

    def __eq__(self, other: object) -> Any:
        """Compare element by element with a variable or a number, as in Fluid."""
        if isinstance(other, Variable | int | float):
            return self._made(layers.equal, self, self._beside(other))
        return NotImplemented

    def __ne__(self, other: object) -> Any:
        """Compare as `==` does."""
        if isinstance(other, Variable | int | float):
            return self._made(layers.not_equal, self, self._beside(other))
        return NotImplemented

    __hash__ = object.__hash__
    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Variable:
        return self._scaled(-1.0)

    def __getitem__(self, index: Any) -> Variable:
        return self._made(part_of, self, index)

    def __iter__(self) -> Iterator[Variable]:
        """Raise `TypeError`: a variable has no elements before a run."""
        raise TypeError(f"{self!r} cannot be iterated over; layers.unstack gives its parts.")

    def _as_fed(self, shape: Shape) -> tuple[Any, ...]:
        """The arguments of `layers.data`."""
        has_rows = shape[:1] == (ROWS,)
        return self.name, shape[has_rows:], self.dtype, False, not has_rows

    def _beside(self, other: Any) -> Variable:
        """`other` as a variable to compare with: a number is a constant of one element."""
        if isinstance(other, Variable):
            return self._alike(other)
        return self._made(layers.fill_constant, (1,), self.dtype, other)

    def _alike(self, other: Variable) -> Variable:
        """`other` in the dtype of this one, as in Fluid."""
        return other if other.dtype == self.dtype else other.astype(self.dtype)

    def _scaled(self, factor: float, added: float = 0.0) -> Variable:
        return self._made(layers.scale, self, float(factor), float(added))

    def _made(self, function: Callable[..., Any], *args: Any) -> Variable:
        made: Variable = self.program.call(function, *args)
        return made


class FluidParameter(Variable):
    """Fluid's `Parameter`: a variable that training changes."""

    @property
    def trainable(self) -> bool:
        """True if an optimizer may train it."""
        return self.program.graph.parameters[self.name].trainable

    @property
    def regularizer(self) -> Any:
        """Decay that its layer was given, None for that of the optimizer."""
        return self.program.builder.declared[self.name].regularizer

    @property
    def gradient_clip_attr(self) -> Any:
        """Clip that its layer was given, None for that of the optimizer."""
        return self.program.builder.declared[self.name].clip

    @property
    def optimize_attr(self) -> dict[str, float]:
        """Factor of the optimizer's rate: `{"learning_rate": 1.0}`."""
        return {"learning_rate": self.program.graph.parameters[self.name].rate_scale}


def grad_var_name(var_name: str) -> str:
    """Return the name of a var's gradient."""
    return f"{var_name}@GRAD"


def shown_shape(shape: Shape) -> Shape:
    """Return a shape as users see it: −1 for every open size, (1,) for a scalar."""
    return tuple(max(size, ROWS) for size in shape) or (1,)


def unwrapped(value: Any) -> Any:
    """Return vars for variables, in lists, tuples and slices, too."""
    if isinstance(value, Variable):
        return value.var
    if isinstance(value, list | tuple):
        return type(value)(unwrapped(item) for item in value)
    if isinstance(value, slice):
        return slice(unwrapped(value.start), unwrapped(value.stop), value.step)
    return value
