"""`fluid.backward`: the gradients of a loss, without updates."""

from __future__ import annotations

from psrt.fluid.framework import FluidProgram
from psrt.fluid.names import Variable
from psrt.fluid.optimizer import Names, ParamsGrads, freeze
from psrt.graph import backward as _psrt


def append_backward(
    loss: Variable, parameter_list: Names | None = None, no_grad_set: Names | None = None
) -> ParamsGrads:
    """Append the gradient ops of `loss`; returns (parameter, gradient) pairs that can be fetched.

    Only parameters of `parameter_list` get gradients, if given, and none of `no_grad_set`. Raises
    `ProgramError` for a loss that is no scalar or depends on no trainable parameter, and for a name
    that is no parameter.
    """
    program = loss.program
    assert isinstance(program, FluidProgram)
    freeze(program, parameter_list, no_grad_set)
    made = _psrt.append_backward(program.graph, loss.var)
    return [(program.variable(name), program.variable(g)) for name, g in made.items()]


__all__ = ["append_backward"]
