"""Initializers of parameters by Fluid's names.

Values are pure functions of (program seed, parameter name, element), so pservers and trainers agree
without communication. An initializer's own `seed` raises `ProgramError`, except 0.
"""

from __future__ import annotations

from psrt.core.errors import ProgramError
from psrt.fluid.names import missing
from psrt.graph import initializer as _psrt
from psrt.graph.initializer import AnyInitializer

_INSTEAD = {
    "Bilinear": "psrt has no transposed convolution to start with it.",
    "BilinearInitializer": "psrt has no transposed convolution to start with it.",
    "NumpyArrayInitializer": "Run the startup program, then put the array into the scope: "
    "fluid.global_scope().find_var(name).get_tensor().set(array, place).",
}


def Constant(value: float = 0.0, force_cpu: bool = False) -> AnyInitializer:
    """Set every element to `value`."""
    return _psrt.Constant(float(value))


def Uniform(low: float = -1.0, high: float = 1.0, seed: int = 0) -> AnyInitializer:
    """Draw uniformly between `low` and `high`."""
    _check_seed("Uniform", seed)
    return _psrt.Uniform(float(low), float(high))


def Normal(loc: float = 0.0, scale: float = 1.0, seed: int = 0) -> AnyInitializer:
    """Draw from a normal distribution of mean `loc` and standard deviation `scale`."""
    _check_seed("Normal", seed)
    return _psrt.Normal(float(loc), float(scale))


def TruncatedNormal(loc: float = 0.0, scale: float = 1.0, seed: int = 0) -> AnyInitializer:
    """Draw from a normal distribution, truncated to 2 `scale` around `loc`."""
    _check_seed("TruncatedNormal", seed)
    return _psrt.TruncatedNormal(float(loc), float(scale))


def Xavier(
    uniform: bool = True, fan_in: int | None = None, fan_out: int | None = None, seed: int = 0
) -> AnyInitializer:
    """Draw with variance 2 / (fan_in + fan_out) (Glorot & Bengio 2010)."""
    _check_seed("Xavier", seed)
    return _psrt.Xavier(uniform, fan_in or 0, fan_out or 0)


def MSRA(uniform: bool = True, fan_in: int | None = None, seed: int = 0) -> AnyInitializer:
    """Draw with variance 2 / fan_in (He et al. 2015)."""
    _check_seed("MSRA", seed)
    return _psrt.Msra(uniform, fan_in or 0)


def _check_seed(kind: str, seed: int) -> None:
    if seed:
        raise ProgramError(
            f"initializer.{kind} was given the seed {seed}; psrt draws from the program's seed and "
            "the parameter's name.",
            hint="Leave seed out, and set random_seed of the program.",
        )


ConstantInitializer = Constant
UniformInitializer = Uniform
NormalInitializer = Normal
TruncatedNormalInitializer = TruncatedNormal
XavierInitializer = Xavier
MSRAInitializer = MSRA

__all__ = ["MSRA", "Constant", "ConstantInitializer", "MSRAInitializer", "Normal"]
__all__ += ["NormalInitializer", "TruncatedNormal", "TruncatedNormalInitializer", "Uniform"]
__all__ += ["UniformInitializer", "Xavier", "XavierInitializer"]


def __getattr__(name: str) -> object:
    raise missing("fluid.initializer", name, __all__, _INSTEAD)
