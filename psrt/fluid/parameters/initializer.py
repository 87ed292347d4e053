"""Initializers of parameters by Fluid's names.

Values are pure functions of (program seed, parameter name, element), so pservers and trainers agree
without communication. With a `seed` of its own, an initializer draws from that alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from psrt.fluid.names import missing
from psrt.fluid.parameters.param_attr import Given, NumpyArrayInitializer, Seeded
from psrt.graph import initializer as _psrt
from psrt.graph.initializer import AnyInitializer

_INSTEAD = {
    "Bilinear": "psrt has no transposed convolution to start with it.",
    "BilinearInitializer": "psrt has no transposed convolution to start with it.",
}


def Constant(value: float = 0.0, force_cpu: bool = False) -> AnyInitializer:
    """Set every element to `value`."""
    return _psrt.Constant(float(value))


def Uniform(low: float = -1.0, high: float = 1.0, seed: int = 0) -> Given:
    """Draw uniformly between `low` and `high`."""
    return _of(seed, _psrt.Uniform(float(low), float(high)))


def Normal(loc: float = 0.0, scale: float = 1.0, seed: int = 0) -> Given:
    """Draw from a normal distribution of mean `loc` and standard deviation `scale`."""
    return _of(seed, _psrt.Normal(float(loc), float(scale)))


def TruncatedNormal(loc: float = 0.0, scale: float = 1.0, seed: int = 0) -> Given:
    """Draw from a normal distribution, truncated to 2 `scale` around `loc`."""
    return _of(seed, _psrt.TruncatedNormal(float(loc), float(scale)))


def Xavier(
    uniform: bool = True, fan_in: int | None = None, fan_out: int | None = None, seed: int = 0
) -> Given:
    """Draw with variance 2 / (fan_in + fan_out) (Glorot & Bengio 2010)."""
    return _of(seed, _psrt.Xavier(uniform, fan_in or 0, fan_out or 0))


def MSRA(uniform: bool = True, fan_in: int | None = None, seed: int = 0) -> Given:
    """Draw with variance 2 / fan_in (He et al. 2015)."""
    return _of(seed, _psrt.Msra(uniform, fan_in or 0))


def _of(seed: int, initializer: AnyInitializer) -> Given:
    """The initializer, with a seed of its own unless that is 0."""
    return Seeded(initializer, int(seed)) if seed else initializer


@contextmanager
def init_on_cpu() -> Iterator[None]:
    """Without effect: all values begin on the CPU."""
    yield


def force_init_on_cpu() -> bool:
    """Return False, as outside of `init_on_cpu`."""
    return False


ConstantInitializer = Constant
UniformInitializer = Uniform
NormalInitializer = Normal
TruncatedNormalInitializer = TruncatedNormal
XavierInitializer = Xavier
MSRAInitializer = MSRA

__all__ = ["MSRA", "Constant", "ConstantInitializer", "MSRAInitializer", "Normal"]
__all__ += ["NormalInitializer", "TruncatedNormal", "TruncatedNormalInitializer", "Uniform"]
__all__ += ["UniformInitializer", "Xavier", "XavierInitializer"]
__all__ += ["NumpyArrayInitializer", "force_init_on_cpu", "init_on_cpu"]


def __getattr__(name: str) -> object:
    raise missing("fluid.initializer", name, __all__, _INSTEAD)
