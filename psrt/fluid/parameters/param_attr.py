"""Fluid's `ParamAttr`, and psrt's parameter declarations of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from psrt.core.specs import Constant, Normal, Regularizer, TableOptions, TruncatedNormal, Uniform
from psrt.fluid.names import ArgumentTypeError
from psrt.graph.builder import Param
from psrt.graph.clip import Clip
from psrt.graph.initializer import AnyInitializer, Msra, Xavier
from psrt.graph.regularizer import L1Decay, L2Decay

__all__ = ["ParamAttr"]


@dataclass(frozen=True)
class Seeded:
    """An initializer that draws from a seed of its own, not from the program's."""

    initializer: AnyInitializer
    seed: int


class NumpyArrayInitializer:
    """Set a parameter to an array of its shape, which the startup program puts into the scope.

    A program of a cluster has none: its pservers compute initial values themselves.
    """

    def __init__(self, value: Any) -> None:
        self.array = np.array(value, np.float32)


Given: TypeAlias = AnyInitializer | Seeded | NumpyArrayInitializer
"""An initializer in any form that users give."""


@dataclass(frozen=True)
class ParamAttr:
    """Name, initial values and training of one parameter; layers that name one parameter share it.

    `learning_rate` multiplies the optimizer's. `do_model_average` has no effect. `table`, psrt's
    addition, holds the options of a sparse table: `psrt.tables.TableOptions`.
    """

    name: str | None = None
    initializer: Given | None = None
    learning_rate: float = 1.0
    regularizer: Regularizer | None = None
    trainable: bool = True
    gradient_clip: Clip | None = None
    do_model_average: bool = False
    table: TableOptions | None = None

    def param(self, default: Given | None = None) -> Param:
        """Return psrt's declaration; `default` is the initializer where none was given."""
        given = self.initializer or default
        seed = given.seed if isinstance(given, Seeded) else None
        if isinstance(given, Seeded):
            given = given.initializer
        if isinstance(given, NumpyArrayInitializer):
            given = Constant(0.0)  # until the startup program has run
        return Param(
            self.name or "",
            given,
            self.trainable,
            None if self.learning_rate == 1.0 else float(self.learning_rate),
            self.regularizer,
            self.gradient_clip,
            table=self.table,
            seed=seed,
        )


_DRAWN = (Constant, Normal, TruncatedNormal, Uniform, Xavier, Msra)


def attr_of(given: Any) -> ParamAttr | Literal[False]:
    """Return the ParamAttr of any value Fluid accepts; False omits the parameter.

    Raises `ArgumentTypeError` for other values.
    """
    if isinstance(given, ParamAttr):
        return given
    if given is None or given is True:
        return ParamAttr()
    if given is False:
        return False
    if isinstance(given, str):
        return ParamAttr(name=given)
    if isinstance(given, (*_DRAWN, Seeded, NumpyArrayInitializer)):
        return ParamAttr(initializer=given)
    if isinstance(given, L1Decay | L2Decay):
        return ParamAttr(regularizer=given)
    raise ArgumentTypeError(
        f"{given!r} was given for a parameter, but is no ParamAttr.",
        hint="Give a ParamAttr, a name, an initializer, a regularizer, or False for no parameter.",
    )
