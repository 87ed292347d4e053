"""`LayerHelper`: layers that users write of ops, parameters and vars, as in Fluid.

    helper = LayerHelper("scaled_add", input=x, act=act)
    out = helper.create_variable_for_type_inference(helper.input_dtype())
    helper.append_op("elementwise_add", inputs={"X": [x], "Y": [y]}, outputs={"Out": [out]})
    return helper.append_activation(out)

Types of ops are those of `Block.append_op`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from psrt.core.errors import ProgramError
from psrt.fluid import layers
from psrt.fluid.block import FluidOperator
from psrt.fluid.framework import FluidProgram, default_main_program, default_startup_program
from psrt.fluid.names import Variable, unique_name
from psrt.fluid.parameters import attr_of
from psrt.graph.initializer import Constant


class LayerHelper:
    """One call of a layer of a user's own, with the arguments of that call."""

    def __init__(self, layer_type: str, **kwargs: Any) -> None:
        self.layer_type, self.kwargs = layer_type, kwargs
        self.name: str = kwargs.get("name") or unique_name.generate(layer_type)

    @property
    def main_program(self) -> FluidProgram:
        """The default main program."""
        return default_main_program()

    @property
    def startup_program(self) -> FluidProgram:
        """The default startup program."""
        return default_startup_program()

    @property
    def param_attr(self) -> Any:
        """The ParamAttr of the argument of this name."""
        return attr_of(self.kwargs.get("param_attr"))

    @property
    def bias_attr(self) -> Any:
        """The ParamAttr of the argument of this name, False for no bias."""
        return attr_of(self.kwargs.get("bias_attr"))

    def multiple_input(self, input_param_name: str = "input") -> list[Variable]:
        """Return the vars of an argument, arrays as constants."""
        given = self.kwargs.get(input_param_name, [])
        listed = given if isinstance(given, list | tuple) else [given]
        return [self.to_variable(value) for value in listed]

    def input(self, input_param_name: str = "input") -> Variable:
        """Return the only var of an argument; raises `ProgramError` for several."""
        found = self.multiple_input(input_param_name)
        if len(found) != 1:
            raise ProgramError(f"{self.layer_type} was given {len(found)} vars, but takes one.")
        return found[0]

    def input_dtype(self, input_param_name: str = "input") -> str:
        """Return the dtype of an argument's vars; raises `ProgramError` for several dtypes."""
        dtypes = {var.dtype for var in self.multiple_input(input_param_name)}
        if len(dtypes) != 1:
            raise ProgramError(f"{self.layer_type} was given vars of {sorted(dtypes)}.")
        return dtypes.pop()

    def to_variable(self, value: Any) -> Variable:
        """Return a var, or a constant of an array."""
        made: Variable = value if isinstance(value, Variable) else layers.assign(np.asarray(value))
        return made

    def create_parameter(
        self,
        attr: Any,
        shape: Sequence[int],
        dtype: Any = "float32",
        is_bias: bool = False,
        default_initializer: Any = None,
    ) -> Variable:
        """Return a parameter, see `layers.create_parameter`."""
        made: Variable = layers.create_parameter(
            shape, dtype, None, attr, is_bias, default_initializer
        )
        return made

    def create_variable_for_type_inference(
        self, dtype: Any, stop_gradient: bool = False
    ) -> Variable:
        """Return a var for an op to write."""
        made: Variable = layers.create_tensor(dtype, unique_name.generate(f"{self.name}.tmp"))
        return made

    create_variable = create_tmp_variable = create_variable_for_type_inference

    def create_global_variable(
        self,
        persistable: bool = False,
        shape: Sequence[int] = (1,),
        dtype: Any = "float32",
        name: str | None = None,
        **options: Any,
    ) -> Variable:
        """Return a var that keeps its value between steps, 0 at first; others have no effect."""
        name = name or unique_name.generate(f"{self.name}.tmp")
        made: Variable = layers.create_global_var(shape, 0.0, dtype, persistable, name=name)
        return made

    def create_or_get_global_variable(self, name: str, **options: Any) -> tuple[Variable, bool]:
        """Return the var of this name, and whether it was made: see `create_global_variable`."""
        block = self.main_program.global_block()
        if block.has_var(name):
            return block.var(name), False
        return self.create_global_variable(name=name, **options), True

    def set_variable_initializer(self, var: Variable, initializer: Any) -> Variable:
        """Let a var of `create_global_variable` begin with a constant.

        Raises `ProgramError` for another initializer.
        """
        if not isinstance(initializer, Constant):
            raise ProgramError(f"{var.name} was given {initializer!r}; it begins with a constant.")
        vars = self.main_program.graph.vars
        vars[var.name] = dataclasses.replace(var.var, initial=float(initializer.value))
        return var

    def append_op(
        self,
        type: str | None = None,
        inputs: Mapping[str, Any] | None = None,
        outputs: Mapping[str, Any] | None = None,
        attrs: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> FluidOperator:
        """Append an op, see `Block.append_op`."""
        block = self.main_program.global_block()
        return block.append_op(type or self.layer_type, inputs, outputs, attrs)

    def append_bias_op(
        self, input_var: Variable, dim_start: int = 1, dim_end: int | None = None
    ) -> Variable:
        """Return the sum of a var and a bias of its sizes from `dim_start` to `dim_end`."""
        attr = self.bias_attr
        if attr is False:
            return input_var
        bias = self.create_parameter(attr, input_var.shape[dim_start:dim_end], is_bias=True)
        made: Variable = layers.elementwise_add(input_var, bias, axis=dim_start)
        return made

    def append_activation(self, input_var: Variable) -> Variable:
        """Return the activation `act`, an argument of the layer, of a var."""
        act = self.kwargs.get("act")
        made: Variable = input_var if act is None else getattr(layers, act)(input_var)
        return made


__all__ = ["LayerHelper"]
