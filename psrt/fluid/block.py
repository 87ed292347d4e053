"""The block of a program, its vars and ops, as Fluid's users see and extend them."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from psrt.core.errors import ProgramError
from psrt.core.hints import did_you_mean
from psrt.fluid.names import NamedVars, Variable, dtype_name, first_ops, refusing_class, unique_name
from psrt.fluid.parameters import ParamAttr
from psrt.graph.program import Op
from psrt.graph.program import Program as Graph


class BlockOwner(Protocol):
    """The program of a block."""

    graph: Graph
    tensors: dict[str, str]

    @property
    def initialises(self) -> Sequence[BlockOwner]: ...

    def variable(self, name: str) -> Variable: ...
    def list_vars(self) -> Any: ...
    def all_parameters(self) -> list[Variable]: ...
    def tensor(self, dtype: str, name: str) -> Variable: ...
    def call(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any: ...


@dataclasses.dataclass(frozen=True)
class MemoryReuse:
    """Arguments of `memory_optimize`: gradients excluded, and vars that will be fetched."""

    skip_grads: bool = False
    keep: frozenset[str] = frozenset()


class FluidOperator:
    """One op: names of its vars by slot, and attributes. Slots may be written as in Fluid, `X`."""

    def __init__(self, op: Op) -> None:
        self._op = op

    @property
    def type(self) -> str:
        """The type of the op in psrt, such as `fc`."""
        return self._op.type

    @property
    def role(self) -> str:
        """The part of a step: forward, backward, clip_and_decay or optimize."""
        return self._op.role

    @property
    def input_names(self) -> list[str]:
        """The slots of the inputs."""
        return [*self._op.inputs]

    @property
    def output_names(self) -> list[str]:
        """The slots of the outputs."""
        return [*self._op.outputs]

    @property
    def input_arg_names(self) -> list[str]:
        """The names of the vars that it reads."""
        return [*self._op.reads()]

    @property
    def output_arg_names(self) -> list[str]:
        """The names of the vars that it writes."""
        return [*self._op.writes()]

    @property
    def attr_names(self) -> list[str]:
        """The names of the attributes."""
        return [*self._op.attrs]

    def input(self, name: str) -> list[str]:
        """Return the names of the vars in an input slot; raises `ProgramError` naming the slots."""
        return self._slot(self._op.inputs, name)

    def output(self, name: str) -> list[str]:
        """Return the names of the vars in an output slot."""
        return self._slot(self._op.outputs, name)

    def has_attr(self, name: str) -> bool:
        """Return whether it has an attribute."""
        return name in self._op.attrs

    def attr(self, name: str) -> Any:
        """Return an attribute; raises `ProgramError` naming the nearest."""
        if name not in self._op.attrs:
            hint = did_you_mean(name, self._op.attrs, f"It has {', '.join(self._op.attrs)}.")
            raise ProgramError(f"An op {self.type} has no attribute {name}.", hint=hint)
        return self._op.attrs[name]

    def all_attrs(self) -> dict[str, Any]:
        """Return the attributes by name."""
        return dict(self._op.attrs)

    def __str__(self) -> str:
        return f"{self.type}({self._op.inputs}) -> {self._op.outputs}"

    def _slot(self, slots: Mapping[str, tuple[str, ...]], name: str) -> list[str]:
        found = {slot.lower(): names for slot, names in slots.items()}
        if name.lower() not in found:
            raise ProgramError(
                f"An op {self.type} has no slot {name}.", hint=f"It has {', '.join(slots)}."
            )
        return [*found[name.lower()]]


class ProgramBytes:
    """A program as bytes, which `Program.parse_from_string` reads."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def serialize_to_string(self) -> bytes:
        """Return the program's text in UTF-8."""
        return self._graph.to_text().encode()


class FluidBlock:
    """Fluid's `Block`, the only one of a program: its vars and ops."""

    idx = 0
    parent_idx = -1

    def __init__(self, program: BlockOwner) -> None:
        self.program = program

    @property
    def ops(self) -> Sequence[FluidOperator]:
        """The ops in the order they run; of a startup program one for each var that it fills."""
        first = (op for part in self.program.initialises for op in first_ops(part.graph))
        return tuple(FluidOperator(op) for op in (*first, *self.program.graph.ops))

    @property
    def vars(self) -> dict[str, Variable]:
        """The variables by name."""
        found = ((variable.name, variable) for variable in self.program.list_vars())
        return NamedVars(found, self.program.graph)

    def var(self, name: str) -> Variable:
        """Return the var of this name; raises `ProgramError` naming the nearest."""
        return self.program.variable(name)

    def has_var(self, name: str) -> bool:
        """Return whether the program has a var of this name."""
        known = self.program.graph.vars.keys() | self.program.tensors.keys()
        return name in known or name in self.vars

    def all_parameters(self) -> list[Variable]:
        """Return the parameters in order of declaration."""
        return self.program.all_parameters()

    iter_parameters = all_parameters
    _var_recursive = var

    def _find_var_recursive(self, name: str) -> Variable | None:
        return self.var(name) if self.has_var(name) else None

    def to_string(self, throw_on_error: bool = True, with_details: bool = False) -> str:
        """Return psrt's text form of the program; arguments have no effect."""
        return self.program.graph.to_text()

    __str__ = to_string

    def create_var(
        self,
        name: str | None = None,
        dtype: Any = None,
        shape: Sequence[int] | None = None,
        **options: Any,
    ) -> Variable:
        """Return a var for ops to write, of `dtype`, float32 by default; or the one of this name.

        One of a `shape` is fed if an op reads it before one writes it. Other arguments have no
        effect. Raises `VarError` for another shape or dtype than that of the var of this name.
        """
        if name is not None and name in self.program.tensors:
            return _checked(self.program.variable(name), dtype, shape)
        made = self.program.tensor(
            dtype_name(dtype or "float32"), name or unique_name.generate("_generated_var")
        )
        made.declared = None if shape is None else tuple(shape)
        return made

    def create_parameter(
        self,
        name: str | None = None,
        shape: Sequence[int] = (),
        dtype: Any = "float32",
        initializer: Any = None,
        regularizer: Any = None,
        trainable: bool = True,
        **options: Any,
    ) -> Variable:
        """Return a parameter of `shape`, Xavier by default; other arguments have no effect."""
        adapting = importlib.import_module("psrt.fluid.adapting")  # it needs the programs
        attr = ParamAttr(name, initializer, regularizer=regularizer, trainable=trainable)
        made: Variable = adapting.parameter_in(self.program, shape, dtype, attr)
        return made

    def append_op(
        self,
        type: str,
        inputs: Mapping[str, Any] | None = None,
        outputs: Mapping[str, Any] | None = None,
        attrs: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> FluidOperator:
        """Append an op by Fluid's type, slots and attributes; outputs are vars of `create_var`.

        Types are those that files of programs may have. Returns the last op of psrt that it
        became. Raises `ProgramError` for another type.
        """
        formats = importlib.import_module("psrt.fluid.formats")  # it needs the layers
        formats.append_op(self.program, type, inputs or {}, outputs or {}, attrs or {})
        return self.ops[-1]


OpProtoHolder = refusing_class(
    "fluid.framework",
    "OpProtoHolder",
    "declarations of Fluid's ops",
    "docs/reference/layers.md has those of psrt.",
)


class VarError(ProgramError, ValueError):
    """A var was to be created that is there with another type."""


def _checked(var: Variable, dtype: Any, shape: Sequence[int] | None) -> Variable:
    other = (shape is not None and tuple(shape) != var.shape) or (
        dtype is not None and dtype_name(dtype) != var.dtype
    )
    if other:
        raise VarError(f"{var!r} is there already, so none of shape {shape} was created.")
    return var


__all__ = ["FluidBlock", "FluidOperator", "MemoryReuse", "OpProtoHolder", "ProgramBytes"]
