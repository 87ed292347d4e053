"""Elementwise functions, and softmax. All take ragged vars."""

from __future__ import annotations

from psrt.graph.builder import Layer
from psrt.graph.layers.elementwise import activate
from psrt.graph.program import Var

# --- activations ----------------------------------------------------------------------------------


def relu(x: Var) -> Var:
    """ReLU: max(x, 0), elementwise."""
    return _function("relu", x)


def relu6(x: Var, threshold: float = 6.0) -> Var:
    """Bounded ReLU: min(max(x, 0), threshold), elementwise."""
    return _function("relu6", x, threshold=threshold)


def leaky_relu(x: Var, alpha: float = 0.02) -> Var:
    """Leaky ReLU: x where x > 0, else `alpha` · x, elementwise."""
    return _function("leaky_relu", x, alpha=alpha)


def elu(x: Var, alpha: float = 1.0) -> Var:
    """ELU: x where x > 0, else `alpha` · (eˣ − 1), elementwise (Clevert et al. 2015)."""
    return _function("elu", x, alpha=alpha)


def sigmoid(x: Var) -> Var:
    """Sigmoid 1 / (1 + e⁻ˣ), elementwise."""
    return _function("sigmoid", x)


def logsigmoid(x: Var) -> Var:
    """Logarithm of the sigmoid, −ln(1 + e⁻ˣ), elementwise."""
    return _function("logsigmoid", x)


def hard_sigmoid(x: Var, slope: float = 0.2, offset: float = 0.5) -> Var:
    """Piecewise linear sigmoid: `slope` · x + `offset`, cut to [0, 1], elementwise."""
    return _function("hard_sigmoid", x, slope=slope, offset=offset)


def tanh(x: Var) -> Var:
    """Hyperbolic tangent, elementwise."""
    return _function("tanh", x)


def gelu(x: Var, approximate: bool = False) -> Var:
    """GELU: x/2 · (1 + erf(x / √2)); `approximate` by a tanh (Hendrycks & Gimpel 2016)."""
    return _function("gelu_tanh" if approximate else "gelu", x)


def softplus(x: Var) -> Var:
    """Softplus ln(1 + eˣ), elementwise."""
    return _function("softplus", x)


def softsign(x: Var) -> Var:
    """Softsign x / (1 + |x|), elementwise."""
    return _function("softsign", x)


def swish(x: Var, beta: float = 1.0) -> Var:
    """Swish: x · sigmoid(`beta` · x), elementwise (Ramachandran et al. 2017)."""
    return _function("swish", x, beta=beta)


def softmax(x: Var, axis: int = -1) -> Var:
    """Softmax eˣ / Σ eˣ, summed along `axis`, which is not that of the examples."""
    return _function("softmax", x, axis=axis)


def log_softmax(x: Var, axis: int = -1) -> Var:
    """Logarithm of the softmax, x − ln Σ eˣ, summed along `axis`, not that of the examples."""
    return _function("log_softmax", x, axis=axis)


# --- functions ------------------------------------------------------------------------------------


def exp(x: Var) -> Var:
    """Exponential eˣ, elementwise."""
    return _function("exp", x)


def log(x: Var) -> Var:
    """Natural logarithm, elementwise."""
    return _function("log", x)


def sqrt(x: Var) -> Var:
    """Square root, elementwise."""
    return _function("sqrt", x)


def rsqrt(x: Var) -> Var:
    """Reciprocal square root 1 / √x, elementwise."""
    return _function("rsqrt", x)


def square(x: Var) -> Var:
    """Square x², elementwise."""
    return _function("square", x)


def abs(x: Var) -> Var:
    """Absolute value, elementwise; its gradient at 0 is 0."""
    return _function("abs", x)


def reciprocal(x: Var) -> Var:
    """Reciprocal 1 / x, elementwise."""
    return _function("reciprocal", x)


def sin(x: Var) -> Var:
    """Sine, elementwise."""
    return _function("sin", x)


def cos(x: Var) -> Var:
    """Cosine, elementwise."""
    return _function("cos", x)


def sign(x: Var) -> Var:
    """Sign −1, 0 or 1, elementwise; no gradient."""
    return _function("sign", x)


def floor(x: Var) -> Var:
    """Largest whole number not above x, elementwise; no gradient."""
    return _function("floor", x)


def ceil(x: Var) -> Var:
    """Smallest whole number not below x, elementwise; no gradient."""
    return _function("ceil", x)


def round(x: Var) -> Var:
    """Nearest whole number, halves to the even one, elementwise; no gradient."""
    return _function("round", x)


def pow(x: Var, factor: float = 1.0) -> Var:
    """Power x^`factor`, elementwise."""
    return _function("pow", x, factor=factor)


def clip(x: Var, min: float, max: float) -> Var:
    """Cut x to [`min`, `max`]; the gradient is 0 where x was cut. Takes int64, too."""
    return _function("clip", x, min=min, max=max)


def scale(
    x: Var,
    scale: float = 1.0,
    bias: float = 0.0,
    bias_after_scale: bool = True,
    act: str | None = None,
) -> Var:
    """Linear function `scale` · x + `bias`, or `scale` · (x + `bias`). Takes int64, too."""
    layer = Layer("scale")
    scale, bias = layer.number("scale", scale), layer.number("bias", bias)
    added = bias if bias_after_scale else bias * scale
    return activate(layer, layer.op("scale", {"x": x}, scale=scale, bias=added), act)


def _function(kind: str, x: Var, **attrs: float) -> Var:
    return Layer(kind).op(kind, {"x": x}, **attrs)
