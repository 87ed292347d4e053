"""Optimizers by Fluid's names, each also as `…Optimizer`; formulas are in
`psrt.core.specs.optimizers`.

`minimize` writes into the program of the loss. `learning_rate` is a float or a schedule of
`fluid.layers`. Defaults are Fluid's: Adam moves all rows of a sparse table unless `lazy_mode`, and
Adadelta does not use its rate. Numbers a formula does not allow raise `ConfigError`.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence
from typing import TypeAlias, TypedDict, Unpack

from psrt.core.errors import ProgramError
from psrt.fluid.framework import FluidProgram
from psrt.fluid.names import Variable, differentiated, missing, scalar
from psrt.fluid.updates.chosen_parameters import Names, only_training
from psrt.fluid.updates.clip import ChosenClip, set_gradient_clip
from psrt.fluid.updates.rates import Rate, rate_of
from psrt.graph import optimizer as _psrt
from psrt.graph.backward import append_backward, differentiated_by
from psrt.graph.clip import Clip
from psrt.graph.declaration import Declaration, forget_updates
from psrt.graph.program import Op, Var
from psrt.graph.regularizer import Regularizer

ParamsGrads: TypeAlias = list[tuple[Variable, Variable]]

log = logging.getLogger("psrt.fluid")


class Optimizer:
    """An optimizer with its learning rate, as `declaration` holds them for psrt."""

    def __init__(
        self,
        declaration: Declaration,
        parameter_list: Names | None = None,
        clip: ChosenClip | None = None,
    ) -> None:
        self.declaration = declaration
        self._parameters, self._clip = parameter_list, clip

    def minimize(
        self,
        loss: Variable,
        startup_program: FluidProgram | None = None,
        parameter_list: Names | None = None,
        no_grad_set: Names | None = None,
    ) -> tuple[Sequence[Op], ParamsGrads]:
        """Append backward, clipping, regularisation and updates to the program of `loss`, a scalar.

        Returns the update ops, and (parameter, gradient) pairs. `parameter_list`, if given, names
        all parameters to train, `no_grad_set` those to leave out; `startup_program` has no effect.
        Other optimizers may train others by the same loss; parameters that have one get this one
        instead, with a warning. In a program without parameters it does nothing, with a warning.
        Raises `ProgramError` for a loss that is no scalar or depends on no trainable parameter, for
        a parameter that another loss trains, and for a name that is no parameter; `TypeError` for
        what is no name or variable.
        """
        program = loss.program
        assert isinstance(program, FluidProgram)
        if self._clip is not None:
            set_gradient_clip(self._clip, program=program)
        if not (program.graph.parameters or differentiated(program)):
            log.warning("minimize(%s) updates nothing: the program has no parameters.", loss.name)
            return [], []
        chosen = only_training(program, parameter_list or self._parameters, no_grad_set)
        with chosen, program.written_into():
            made = self._train(program, scalar(loss))
        updates = [op for op in program.graph.ops if op.role == "optimize"]
        gradients = [(program.variable(p), program.variable(g)) for p, g in made.items()]
        return updates, gradients

    def _train(self, program: FluidProgram, loss: Var) -> dict[str, str]:
        """Append backward and updates; parameters that have some of this loss get these instead."""
        known = differentiated_by(program.graph, loss)
        again = [name for name in known if program.graph.parameters[name].optimizer]
        made = append_backward(program.graph, loss, differentiated(program), known)
        if again:
            forget_updates(program.graph, again)
            log.warning(
                "minimize(%s) replaces the optimizers of %s; PaddlePaddle would update them twice.",
                *(loss.name, ", ".join(again)),
            )
        return self.declaration.apply(list(made))

    def backward(
        self,
        loss: Variable,
        startup_program: FluidProgram | None = None,
        parameter_list: Names | None = None,
        no_grad_set: Names | None = None,
        callbacks: object = None,
    ) -> ParamsGrads:
        """Append backward to the program of `loss`; returns (parameter, gradient) pairs.

        Arguments and errors are those of `minimize`; `callbacks` has no effect.
        """
        program = loss.program
        assert isinstance(program, FluidProgram)
        chosen = only_training(program, parameter_list or self._parameters, no_grad_set)
        with chosen, program.written_into():
            made = append_backward(program.graph, scalar(loss), differentiated(program))
        return [(program.variable(name), program.variable(g)) for name, g in made.items()]

    def apply_gradients(self, params_grads: ParamsGrads) -> Sequence[Op]:
        """Append clipping, regularisation and updates of what `backward` returned.

        Returns the update ops.
        """
        if not params_grads:
            raise ProgramError("apply_gradients was given no parameter.")
        program = params_grads[0][0].program
        assert isinstance(program, FluidProgram)
        if self._clip is not None:
            set_gradient_clip(self._clip, program=program)
        with program.written_into():
            self.declaration.apply([parameter.name for parameter, _ in params_grads])
        return [op for op in program.graph.ops if op.role == "optimize"]

    def apply_optimize(
        self, loss: Variable, startup_program: FluidProgram | None, params_grads: ParamsGrads
    ) -> Sequence[Op]:
        """Do what `apply_gradients` does; the first arguments have no effect."""
        return self.apply_gradients(params_grads)


class Common(TypedDict, total=False):
    """Keyword arguments of every optimizer; `name` has no effect."""

    parameter_list: Names | None
    regularization: Regularizer | None
    grad_clip: Clip | ChosenClip | None
    name: str | None


def SGD(learning_rate: Rate, **common: Unpack[Common]) -> Optimizer:
    """Stochastic gradient descent: w −= lr · g."""
    return _of(_psrt.Sgd(rate_of(learning_rate)), common)


def Momentum(
    learning_rate: Rate, momentum: float, use_nesterov: bool = False, **common: Unpack[Common]
) -> Optimizer:
    """Momentum: v = momentum · v + g; w −= lr · v (Polyak 1964)."""
    return _of(_psrt.Momentum(rate_of(learning_rate), momentum, use_nesterov), common)


def Adagrad(
    learning_rate: Rate,
    epsilon: float = 1e-6,
    initial_accumulator_value: float = 0.0,
    **common: Unpack[Common],
) -> Optimizer:
    """Adagrad: m += g²; w −= lr · g / (√m + epsilon) (Duchi et al. 2011)."""
    return _of(_psrt.Adagrad(rate_of(learning_rate), epsilon, initial_accumulator_value), common)


def DecayedAdagrad(
    learning_rate: Rate, decay: float = 0.95, epsilon: float = 1e-6, **common: Unpack[Common]
) -> Optimizer:
    """Adagrad over a decaying mean: m = decay · m + (1 − decay) · g²."""
    return _of(_psrt.DecayedAdagrad(rate_of(learning_rate), decay, epsilon), common)


def Adadelta(
    learning_rate: Rate = 1.0, epsilon: float = 1e-6, rho: float = 0.95, **common: Unpack[Common]
) -> Optimizer:
    """Adadelta (Zeiler 2012), whose formula has no rate: `learning_rate` is unused, as in Fluid."""
    return _of(_psrt.Adadelta(1.0, epsilon, rho), common)


def RMSProp(
    learning_rate: Rate,
    rho: float = 0.95,
    epsilon: float = 1e-6,
    momentum: float = 0.0,
    centered: bool = False,
    **common: Unpack[Common],
) -> Optimizer:
    """RMSProp: rates by the mean of recent squares (Tieleman & Hinton 2012)."""
    return _of(_psrt.RmsProp(rate_of(learning_rate), rho, epsilon, momentum, centered), common)


def Adam(
    learning_rate: Rate = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    lazy_mode: bool = False,
    **common: Unpack[Common],
) -> Optimizer:
    """Adam (Kingma & Ba 2015).

    Without `lazy_mode` every step updates all rows of a sparse table, which takes time.
    """
    return _of(_psrt.Adam(rate_of(learning_rate), beta1, beta2, epsilon, lazy_mode), common)


def Adamax(
    learning_rate: Rate = 0.001,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    **common: Unpack[Common],
) -> Optimizer:
    """Adam with the largest gradient in place of the mean square (Kingma & Ba 2015)."""
    return _of(_psrt.Adamax(rate_of(learning_rate), beta1, beta2, epsilon), common)


def Ftrl(
    learning_rate: Rate,
    l1: float = 0.0,
    l2: float = 0.0,
    lr_power: float = -0.5,
    **common: Unpack[Common],
) -> Optimizer:
    """FTRL-Proximal (McMahan et al. 2013)."""
    return _of(_psrt.Ftrl(rate_of(learning_rate), l1, l2, lr_power), common)


def LarsMomentum(
    learning_rate: Rate,
    momentum: float,
    lars_coeff: float = 0.001,
    lars_weight_decay: float = 0.0005,
    **common: Unpack[Common],
) -> Optimizer:
    """Momentum with a rate per parameter, from norms of w and g (You et al. 2017)."""
    return _of(
        _psrt.LarsMomentum(rate_of(learning_rate), momentum, lars_coeff, lars_weight_decay), common
    )


def Lamb(
    learning_rate: Rate = 0.001,
    lamb_weight_decay: float = 0.01,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-6,
    **common: Unpack[Common],
) -> Optimizer:
    """Adam with a rate per parameter, from norms of w and its update (You et al. 2020)."""
    return _of(_psrt.Lamb(rate_of(learning_rate), lamb_weight_decay, beta1, beta2, epsilon), common)


def _of(declaration: Declaration, common: Common) -> Optimizer:
    clip = common.get("grad_clip")
    chosen = clip if isinstance(clip, ChosenClip) else None
    declared = dataclasses.replace(
        declaration,
        regularization=common.get("regularization"),
        grad_clip=None if isinstance(clip, ChosenClip) else clip,
    )
    return Optimizer(declared, common.get("parameter_list"), chosen)


SGDOptimizer = SGD
MomentumOptimizer = Momentum
AdagradOptimizer = Adagrad
DecayedAdagradOptimizer = DecayedAdagrad
AdadeltaOptimizer = Adadelta
RMSPropOptimizer = RMSProp
AdamOptimizer = Adam
AdamaxOptimizer = Adamax
FtrlOptimizer = Ftrl
LarsMomentumOptimizer = LarsMomentum
LambOptimizer = Lamb

__all__ = ["SGD", "Adadelta", "AdadeltaOptimizer", "Adagrad", "AdagradOptimizer", "Adam"]
__all__ += ["AdamOptimizer", "Adamax", "AdamaxOptimizer", "DecayedAdagrad"]
__all__ += ["DecayedAdagradOptimizer", "Ftrl", "FtrlOptimizer", "Lamb", "LambOptimizer"]
__all__ += ["LarsMomentum", "LarsMomentumOptimizer", "Momentum", "MomentumOptimizer", "Optimizer"]
__all__ += ["RMSProp", "RMSPropOptimizer", "SGDOptimizer"]

_INSTEAD = {
    "DpsgdOptimizer": "Bound gradients with fluid.clip; psrt adds no noise to them.",
    "Dpsgd": "Bound gradients with fluid.clip; psrt adds no noise to them.",
    "RecomputeOptimizer": "fluid.memory_optimize shares memory within a step.",
    "PipelineOptimizer": "Replicas share a batch: fluid.ParallelExecutor, CPU_NUM.",
    "DGCMomentumOptimizer": "Sparse updates send touched rows alone: embedding(is_sparse=True).",
}


def __getattr__(name: str) -> object:
    raise missing("fluid.optimizer", name, __all__, _INSTEAD)
