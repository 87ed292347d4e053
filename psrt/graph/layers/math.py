"""Functions of one element, and softmax. All take ragged vars as well."""

from __future__ import annotations

from psrt.graph.builder import Layer
from psrt.graph.layers.elementwise import activate
from psrt.graph.program import Var

# --- activations ----------------------------------------------------------------------------------


def relu(x: Var) -> Var:
    """max(x, 0)."""
    return _function("relu", x)


def relu6(x: Var, threshold: float = 6.0) -> Var:
    """min(max(x, 0), threshold)."""
    return _function("relu6", x, threshold=threshold)


def leaky_relu(x: Var, alpha: float = 0.02) -> Var:
    """x where x > 0, else `alpha` · x."""
    return _function("leaky_relu", x, alpha=alpha)


def elu(x: Var, alpha: float = 1.0) -> Var:
    """x where x > 0, else `alpha` · (eˣ − 1) (Clevert et al. 2015)."""
    return _function("elu", x, alpha=alpha)


def sigmoid(x: Var) -> Var:
    """1 / (1 + e⁻ˣ)."""
    return _function("sigmoid", x)


def logsigmoid(x: Var) -> Var:
    """ln sigmoid(x)."""
    return _function("logsigmoid", x)


def hard_sigmoid(x: Var, slope: float = 0.2, offset: float = 0.5) -> Var:
    """`slope` · x + `offset`, cut to [0, 1]."""
    return _function("hard_sigmoid", x, slope=slope, offset=offset)


def tanh(x: Var) -> Var:
    """tanh x."""
    return _function("tanh", x)


def gelu(x: Var, approximate: bool = False) -> Var:
    """x/2 · (1 + erf(x / √2)); `approximate` by a tanh (Hendrycks and Gimpel 2016)."""
    return _function("gelu_tanh" if approximate else "gelu", x)


def softplus(x: Var) -> Var:
    """ln(1 + eˣ)."""
    return _function("softplus", x)


def softsign(x: Var) -> Var:
    """x / (1 + |x|)."""
    return _function("softsign", x)


def swish(x: Var, beta: float = 1.0) -> Var:
    """x · sigmoid(`beta` · x) (Ramachandran et al. 2017)."""
    return _function("swish", x, beta=beta)


def softmax(x: Var, axis: int = -1) -> Var:
    """eˣ / Σ eˣ, the sum along `axis`, which is not that of the examples."""
    return _function("softmax", x, axis=axis)


def log_softmax(x: Var, axis: int = -1) -> Var:
    """x − ln Σ eˣ, the sum along `axis`, which is not that of the examples."""
    return _function("log_softmax", x, axis=axis)


# --- functions ------------------------------------------------------------------------------------


def exp(x: Var) -> Var:
    """eˣ."""
    return _function("exp", x)


def log(x: Var) -> Var:
    """The natural logarithm."""
    return _function("log", x)


def sqrt(x: Var) -> Var:
    """√x."""
    return _function("sqrt", x)


def rsqrt(x: Var) -> Var:
    """1 / √x."""
    return _function("rsqrt", x)


def square(x: Var) -> Var:
    """x²."""
    return _function("square", x)


def abs(x: Var) -> Var:
    """|x|, of gradient 0 at 0."""
    return _function("abs", x)


def reciprocal(x: Var) -> Var:
    """1 / x."""
    return _function("reciprocal", x)


def sin(x: Var) -> Var:
    """sin x."""
    return _function("sin", x)


def cos(x: Var) -> Var:
    """cos x."""
    return _function("cos", x)


def sign(x: Var) -> Var:
    """−1, 0 or 1; it has no gradient."""
    return _function("sign", x)


def floor(x: Var) -> Var:
    """The next whole number below; it has no gradient."""
    return _function("floor", x)


def ceil(x: Var) -> Var:
    """The next whole number above; it has no gradient."""
    return _function("ceil", x)


def round(x: Var) -> Var:
    """The nearest whole number, halves to the even one; it has no gradient."""
    return _function("round", x)


def pow(x: Var, factor: float = 1.0) -> Var:
    """x to the power of `factor`."""
    return _function("pow", x, factor=factor)


def clip(x: Var, min: float, max: float) -> Var:
    """x cut to [`min`, `max`]; the gradient is 0 where something was cut. Takes int64 as well."""
    return _function("clip", x, min=min, max=max)


def scale(
    x: Var,
    scale: float = 1.0,
    bias: float = 0.0,
    bias_after_scale: bool = True,
    act: str | None = None,
) -> Var:
    """`scale` · x + `bias`, or `scale` · (x + `bias`). Takes int64 as well."""
    layer = Layer("scale")
    scale, bias = layer.number("scale", scale), layer.number("bias", bias)
    added = bias if bias_after_scale else bias * scale
    return activate(layer, layer.op("scale", {"x": x}, scale=scale, bias=added), act)


def _function(kind: str, x: Var, **attrs: float) -> Var:
    return Layer(kind).op(kind, {"x": x}, **attrs)
