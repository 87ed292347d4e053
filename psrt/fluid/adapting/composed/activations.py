"""Activations made of others, elementwise."""

from __future__ import annotations

from typing import Any

from psrt.core.errors import ProgramError
from psrt.fluid.adapting.composed.calls import called
from psrt.fluid.adapting.written_layers import create_parameter
from psrt.fluid.names import Variable
from psrt.graph import layers as psrt_layers
from psrt.graph.initializer import Constant


def brelu(
    x: Variable, t_min: float = 0.0, t_max: float = 24.0, name: str | None = None
) -> Variable:
    """x within t_min and t_max."""
    return called(psrt_layers.clip, x, t_min, t_max)


def soft_relu(x: Variable, threshold: float = 40.0, name: str | None = None) -> Variable:
    """log(1 + exp(x)), x within ±threshold."""
    return called(psrt_layers.softplus, called(psrt_layers.clip, x, -threshold, threshold))


def stanh(
    x: Variable, scale_a: float = 0.67, scale_b: float = 1.7159, name: str | None = None
) -> Variable:
    """scale_b · tanh(scale_a · x)."""
    return called(psrt_layers.tanh, x * scale_a) * scale_b


def tanh_shrink(x: Variable, name: str | None = None) -> Variable:
    """x − tanh(x)."""
    return x - called(psrt_layers.tanh, x)


def hard_swish(
    x: Variable,
    threshold: float = 6.0,
    scale: float = 6.0,
    offset: float = 3.0,
    name: str | None = None,
) -> Variable:
    """x · min(max(0, x + offset), threshold) / scale."""
    return x * called(psrt_layers.clip, x + offset, 0.0, threshold) / scale


def prelu(x: Variable, mode: str, param_attr: Any = None, name: str | None = None) -> Variable:
    """max(0, x) + alpha · min(0, x), alpha 0.25 at first.

    Mode all has one alpha, element one for each element of an example (rows, …). Raises
    `ProgramError` for another mode.
    """
    if mode not in ("all", "element"):
        raise ProgramError(f"layers.prelu was given mode {mode!r}; psrt has 'all' and 'element'.")
    shape = (1,) if mode == "all" else x.shape[1:]
    alpha = create_parameter(shape, attr=param_attr, default_initializer=Constant(0.25))
    negative = x - called(psrt_layers.relu, x)
    return called(psrt_layers.relu, x) + called(psrt_layers.elementwise_mul, negative, alpha)


def selu(
    x: Variable,
    scale: float = 1.0507009873554805,
    alpha: float = 1.6732632423543772,
    name: str | None = None,
) -> Variable:
    """scale · x where x > 0, else scale · alpha · (eˣ − 1) (Klambauer et al. 2017)."""
    return called(psrt_layers.elu, x, alpha) * scale


def thresholded_relu(x: Variable, threshold: float = 1.0) -> Variable:
    """x where it is above `threshold`, else 0."""
    return called(psrt_layers.where, x > threshold, x, called(psrt_layers.zeros_like, x))


def softshrink(x: Variable, alpha: float = 0.5) -> Variable:
    """x without its part within ±alpha: x − alpha, x + alpha, or 0."""
    return x - called(psrt_layers.clip, x, -alpha, alpha)


def hard_shrink(x: Variable, threshold: float = 0.5) -> Variable:
    """x where |x| is above `threshold`, else 0."""
    is_far = called(psrt_layers.abs, x) > threshold
    return called(psrt_layers.where, is_far, x, called(psrt_layers.zeros_like, x))


def maxout(x: Variable, groups: int, name: str | None = None, axis: int = 1) -> Variable:
    """Largest of each `groups` channels that follow: (rows, c, h, w) → (rows, c / groups, h, w).

    Channels are dimension `axis`, 1, or the last one (Goodfellow et al. 2013).
    """
    at = axis % len(x.shape)
    sizes = [*x.shape[:at], x.shape[at] // groups, groups, *x.shape[at + 1 :]]
    return called(psrt_layers.reduce_max, called(psrt_layers.reshape, x, sizes), at + 1)


__all__ = ["brelu", "hard_shrink", "hard_swish", "maxout", "prelu", "selu", "soft_relu"]
__all__ += ["softshrink", "stanh", "tanh_shrink", "thresholded_relu"]
