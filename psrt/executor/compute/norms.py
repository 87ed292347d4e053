"""Normalisation, in passes of numpy: a fused loop over rows was no faster.

z is (input − mean) / √(variance + epsilon), before scale and bias.
"""

from __future__ import annotations

import math

import numpy as np

from psrt.core.types import Array
from psrt.executor.compute.registry import Bound, Step, computes


def _invert_(squares: Array, count: int, epsilon: float) -> None:
    """Turn sums of squares into 1 / √(their mean + epsilon)."""
    squares /= count
    squares += epsilon
    np.sqrt(squares, out=squares)
    np.reciprocal(squares, out=squares)


# --- over the batch -------------------------------------------------------------------------------


def _by_channel(images: Array) -> Array:
    """(rows, channels) unchanged, (rows, channels, height, width) → (rows, channels, pixels)."""
    if images.ndim == 2:
        return images
    return images.reshape(*images.shape[:2], images.shape[2] * images.shape[3])


def _spread(channels: Array, like: Array) -> Array:
    """(channels,) in a shape that broadcasts to `like`."""
    return channels if like.ndim == 2 else channels[:, None]


def _channel_products(x: Array, y: Array, out: Array) -> None:
    """`out` (channels,) = Σ x · y; no array of the size of x is made."""
    _einsum("nc,nc->c" if x.ndim == 2 else "ncp,ncp->c", x, y, out)


def _einsum(subscripts: str, x: Array, y: Array, out: Array) -> None:
    """`einsum` that may narrow: gradients of parameters stay float32 in a float64 op."""
    np.einsum(subscripts, x, y, out=out, casting="same_kind")


def _takes_running(op: Bound) -> bool:
    return bool(op.attrs["is_test"] or op.attrs["use_global_stats"])


@computes("batch_norm")
def batch_norm(op: Bound) -> Step:
    x, scale, bias, out = (op.one(slot) for slot in ("input", "scale", "bias", "out"))
    saved_mean, saved_inverse = op.one("saved_mean"), op.one("saved_inverse")
    running_mean, running_variance = op.one("mean"), op.one("variance")
    epsilon, is_frozen = op.attrs["epsilon"], _takes_running(op)
    rest, condition = 1 - op.attrs["momentum"], op.maybe("condition")

    def run() -> None:
        mean = saved_mean.reserve(running_mean.value.shape)
        inverse = saved_inverse.reserve(mean.shape)
        values, result = _by_channel(x.value), _by_channel(out.reserve(x.value.shape))
        count = values.size // len(mean)
        learns = count > 0 and not is_frozen  # an empty batch has no mean
        moves = learns and (condition is None or bool(condition.value.item()))
        if learns:
            np.mean(values, axis=(0, *range(2, values.ndim)), out=mean)
        if moves:
            running_mean.value[:] += rest * (mean - running_mean.value)
        if not learns:
            np.copyto(mean, running_mean.value)
        np.subtract(values, _spread(mean, values), out=result)
        if learns:
            _channel_products(result, result, inverse)
        if moves:
            running_variance.value[:] += rest * (inverse / count - running_variance.value)
        if not learns:
            np.copyto(inverse, running_variance.value)
        _invert_(inverse, count if learns else 1, epsilon)
        result *= _spread(inverse * scale.value, result)
        result += _spread(bias.value, result)

    return run


@computes("batch_norm_grad")
def batch_norm_grad(op: Bound) -> Step:
    x, scale, grad = op.one("input"), op.one("scale"), op.one("out@GRAD")
    mean, inverse = op.one("saved_mean"), op.one("saved_inverse")
    x_grad, scratch = op.maybe("input@GRAD"), op.scratch()
    scale_grad = op.maybe("scale@GRAD") or op.own()
    bias_grad = op.maybe("bias@GRAD") or op.own()
    is_frozen = _takes_running(op)

    def run() -> None:
        values, d = _by_channel(x.value), _by_channel(grad.value)
        z = scratch.reserve(values.shape)
        np.subtract(values, _spread(mean.value, z), out=z)
        z *= _spread(inverse.value, z)
        sums, products = (cell.reserve(mean.value.shape) for cell in (bias_grad, scale_grad))
        np.sum(d, axis=(0, *range(2, d.ndim)), out=sums)
        _channel_products(d, z, products)
        if x_grad is None:
            return
        result = _by_channel(x_grad.reserve(x.value.shape))
        if is_frozen:
            np.copyto(result, d)
        else:
            count = max(values.size // len(sums), 1)
            z *= _spread(products / count, z)
            np.subtract(d, z, out=result)
            result -= _spread(sums / count, result)
        result *= _spread(scale.value * inverse.value, result)

    return run


# --- over the features of a row -------------------------------------------------------------------


def _by_row(x: Array, axis: int) -> Array:
    """(rows, features)."""
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


@computes("layer_norm")
def layer_norm(op: Bound) -> Step:
    x, out, mean, inverse = (op.one(slot) for slot in ("input", "out", "mean", "inverse"))
    scale, bias = op.maybe("scale"), op.maybe("bias")
    axis, epsilon = op.attrs["axis"], op.attrs["epsilon"]

    def run() -> None:
        values = _by_row(x.value, axis)
        result = _by_row(out.reserve(x.value.shape), axis)
        centres = mean.reserve(x.value.shape[:axis]).reshape(-1, 1)
        factors = inverse.reserve(x.value.shape[:axis]).reshape(-1)
        np.mean(values, axis=1, keepdims=True, out=centres)
        np.subtract(values, centres, out=result)
        np.einsum("ij,ij->i", result, result, out=factors)
        _invert_(factors, values.shape[1], epsilon)
        result *= factors[:, None]
        if scale is not None:
            result *= scale.value
        if bias is not None:
            result += bias.value

    return run


@computes("layer_norm_grad")
def layer_norm_grad(op: Bound) -> Step:
    x, grad, mean, inverse = (op.one(slot) for slot in ("input", "out@GRAD", "mean", "inverse"))
    scale, scratch, axis = op.maybe("scale"), op.scratch(), op.attrs["axis"]
    x_grad, scale_grad, bias_grad = (op.maybe(f"{s}@GRAD") for s in ("input", "scale", "bias"))

    def run() -> None:
        values, d = _by_row(x.value, axis), _by_row(grad.value, axis)
        factors = inverse.value.reshape(-1, 1)
        z = scratch.reserve(values.shape)
        np.subtract(values, mean.value.reshape(-1, 1), out=z)
        z *= factors
        if bias_grad is not None:
            np.sum(d, axis=0, out=bias_grad.reserve(d.shape[1:]))
        if scale_grad is not None:
            _einsum("ij,ij->j", d, z, scale_grad.reserve(d.shape[1:]))
        if x_grad is not None:
            result = _by_row(x_grad.reserve(x.value.shape), axis)
            np.multiply(d, 1 if scale is None else scale.value, out=result)
            _project_(result, z)
            result *= factors

    return run


def _project_(grad: Array, z: Array) -> None:
    """`grad` (rows, features) −= its mean and its part along z, row by row; overwrites z."""
    along = np.einsum("ij,ij->i", grad, z) / grad.shape[1]
    z *= along[:, None]
    grad -= grad.mean(axis=1, keepdims=True)
    grad -= z
