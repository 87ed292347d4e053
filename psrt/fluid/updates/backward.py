"""`fluid.backward`: the gradients of a loss, without updates."""

from __future__ import annotations

from collections.abc import Sequence

from psrt.core.errors import ProgramError
from psrt.fluid.framework import FluidProgram
from psrt.fluid.names import Variable, differentiated, first_values, scalar
from psrt.fluid.updates.chosen_parameters import Names, only_training
from psrt.fluid.updates.optimizer import ParamsGrads
from psrt.graph import backward as _psrt
from psrt.graph import layers


def append_backward(
    loss: Variable, parameter_list: Names | None = None, no_grad_set: Names | None = None
) -> ParamsGrads:
    """Append the gradient ops of `loss`; returns (parameter, gradient) pairs that can be fetched.

    Vars whose `stop_gradient` was set False get gradients, too, and in a program without parameters
    what is computed from data: `var.grad_name`. Only parameters of `parameter_list` get gradients,
    if given, and none of `no_grad_set`. Raises `ProgramError` for a loss that is no scalar or
    depends on nothing that has a gradient, and for a name that is no parameter.
    """
    program = loss.program
    assert isinstance(program, FluidProgram)
    also = differentiated(program)
    if not also and not program.graph.parameters:
        also = first_values(program)
    with only_training(program, parameter_list, no_grad_set):
        made = _psrt.append_backward(program.graph, scalar(loss), also)
    return [(program.variable(name), program.variable(g)) for name, g in made.items()]


def gradients(
    targets: Variable | Sequence[Variable],
    inputs: Variable | Sequence[Variable],
    target_gradients: None = None,
    no_grad_set: Names | None = None,
) -> list[Variable | None]:
    """Append the gradient ops of the sum of `targets`; returns that of each of `inputs`.

    None stands for an input that no target depends on. `inputs` are any float vars, data too.
    Raises `ProgramError` for `target_gradients`, and for gradients that the program has already.
    """
    if target_gradients is not None:
        raise ProgramError("fluid.gradients was given target_gradients; psrt sums the targets.")
    listed = [targets] if isinstance(targets, Variable) else list(targets)
    wanted = [inputs] if isinstance(inputs, Variable) else list(inputs)
    program = listed[0].program
    assert isinstance(program, FluidProgram)
    sums = [program.call(layers.reduce_sum, target) for target in listed]
    total = sums[0] if len(sums) == 1 else program.call(layers.sums, sums)
    made = _psrt.append_gradients(program.graph, total.var, [var.var.name for var in wanted])
    found = [made.get(var.var.name) for var in wanted]
    return [None if name is None else program.variable(name) for name in found]


def calc_gradient(
    targets: Variable | Sequence[Variable],
    inputs: Variable | Sequence[Variable],
    target_gradients: None = None,
    no_grad_set: Names | None = None,
) -> Variable | list[Variable | None] | None:
    """Do what `gradients` does; returns the gradient of one input as it is."""
    found = gradients(targets, inputs, target_gradients, no_grad_set)
    return found[0] if len(found) == 1 else found


__all__ = ["append_backward", "calc_gradient", "gradients"]
