"""One forward pass of a small program, and scalars that show the gradient of any var."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from psrt import Executor, Ragged, Scope, layers, program
from psrt.core.types import Array
from psrt.graph.program import Var

Feed = Mapping[str, Array | Ragged]


def values_of(
    build: Callable[[], Var | list[Var]], feed: Feed, parameters: Mapping[str, Array] | None = None
) -> list[Array | Ragged]:
    """The vars that `build` returns; `parameters` count instead of initial values."""
    with program() as p:
        built = build()
    scope = Scope()
    scope.init_parameters(p)
    for name, value in (parameters or {}).items():
        scope[name] = value.astype(np.float32)
    fetch = built if isinstance(built, list) else [built]
    return Executor(p, scope).run(feed, fetch, roles=("forward",))


def value_of(
    build: Callable[[], Var], feed: Feed, parameters: Mapping[str, Array] | None = None
) -> Array | Ragged:
    return values_of(build, feed, parameters)[0]


def total(out: Var) -> Var:
    """A scalar in which every element of `out` has a trained factor: errors cannot cancel."""
    if out.ragged:
        flat = layers.reshape(out, (-1, int(np.prod(out.shape[1:]))))
        return total(layers.sequence_pool(layers.square(flat), "sum"))
    if min(out.shape[1:], default=0) < 0:
        return layers.reduce_sum(layers.square(out))
    factors = layers.create_parameter([1, *out.shape[1:]] if out.shape else [1], "factors")
    return layers.reduce_sum(layers.elementwise_mul(out, factors))


def trained(name: str, shape: tuple[int, ...]) -> Var:
    """A batch named `name` whose every element is multiplied with a parameter."""
    return layers.elementwise_mul(
        layers.data(name, shape), layers.create_parameter(shape, f"{name}_factor")
    )


def trained_lists(name: str, width: int) -> Var:
    """Ragged rows (elements, `width`) made of ragged floats and a parameter."""
    elements = layers.reshape(layers.data(name, ragged=True), (-1, 1))
    return layers.elementwise_mul(elements, layers.create_parameter((1, width), f"{name}_row"))
