"""Convolution and pooling of images, and normalisation, as they are when testing."""

from __future__ import annotations

import numpy as np

from psrt.trainer.models.onnx_nodes.table import Drawing, exports


@exports("conv2d")
def conv2d(d: Drawing) -> None:
    attrs = {
        "strides": list(d.attrs["stride"]),
        "pads": [*d.attrs["padding"][:2], *d.attrs["padding"][-2:]],
        "dilations": list(d.attrs["dilation"]),
        "group": d.attrs["groups"],
    }
    is_relu = d.attrs["activation"] == "relu"
    inputs = (d.one("input"), d.one("filter"), *d.all("bias"))
    maps = d.node("Conv", inputs, *(() if is_relu else (d.out(),)), **attrs)
    if is_relu:
        d.node("Relu", (maps,), d.out())


@exports("pool2d")
def pool2d(d: Drawing) -> None:
    is_max = d.attrs["pool"] == "max"
    counted = {} if is_max else {"count_include_pad": int(not d.attrs["exclusive"])}
    d.node(
        "MaxPool" if is_max else "AveragePool",
        (d.one("input"),),
        d.out(),
        kernel_shape=list(d.attrs["size"]),
        strides=list(d.attrs["stride"]),
        pads=[*d.attrs["padding"][:2], *_padding_behind(d)],
        **counted,
    )


def _padding_behind(d: Drawing) -> list[int]:
    """Pad as much as the last window needs: runtimes differ in the meaning of `ceil_mode`."""
    sizes, counts = d.shape("input")[2:], d.out_shape()[2:]
    steps = (d.attrs["stride"], d.attrs["size"], d.attrs["padding"][:2])
    return [
        max((count - 1) * stride + window - size - padding, 0)
        for size, count, stride, window, padding in zip(sizes, counts, *steps, strict=True)
    ]


@exports("batch_norm")
def batch_norm(d: Drawing) -> None:
    slots = ("input", "scale", "bias", "mean", "variance")
    inputs = [d.one(slot) for slot in slots]
    d.node("BatchNormalization", inputs, d.out(), epsilon=float(d.attrs["epsilon"]))


@exports("layer_norm")
def layer_norm(d: Drawing) -> None:
    """ONNX wants a scale, and it and the bias in the shape of the features."""
    axis = d.attrs["axis"]
    features = d.shape("input")[axis:]
    shaped = [d.node("Reshape", (flat, d.ints(*features))) for flat in d.all("bias")]
    if d.all("scale"):
        scale = d.node("Reshape", (d.one("scale"), d.ints(*features)))
    else:
        scale = d.constant(np.ones(features, np.float32))
    inputs = (d.one("input"), scale, *shaped)
    epsilon = float(d.attrs["epsilon"])
    d.node("LayerNormalization", inputs, d.out(), axis=axis, epsilon=epsilon)


@exports("dropout")
def dropout(d: Drawing) -> None:
    """Nothing is dropped in a test, but "downgrade_in_infer" makes up for it there."""
    downgrades = d.attrs["implementation"] == "downgrade_in_infer"
    kept = 1.0 - float(d.attrs["p"]) if downgrades else 1.0
    d.node("Mul", (d.one("x"), d.number(kept)), d.out())
