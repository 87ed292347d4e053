"""Gradients of a loss, and what is done with them. In reading order:

clip       bounds of gradients
rates      learning rates
chosen_parameters  the parameters that one backward pass is to train
optimizer  updates
backward   gradients without updates
"""

from psrt.fluid.updates import backward, clip, optimizer
from psrt.fluid.updates.backward import gradients
from psrt.fluid.updates.optimizer import Optimizer

__all__ = ["Optimizer", "backward", "clip", "gradients", "optimizer"]
