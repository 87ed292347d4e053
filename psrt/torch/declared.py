"""Declarations of tables and dense parameters, as a partition plan reads them."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from psrt.core.errors import ProgramError
from psrt.core.specs import (
    DEFAULT_OPTIONS,
    Constant,
    ConstantRate,
    Initializer,
    LearningRate,
    Optimizer,
    Regularizer,
    TableOptions,
)
from psrt.core.types import F32, Shape
from psrt.torch.optim import ServerOptimizer

Rates: TypeAlias = Mapping[str, float]
"""Learning rates by parameter."""

Dense: TypeAlias = Mapping[str, F32]
"""Whole dense parameters by name."""


@dataclass(frozen=True)
class DeclaredParameter:
    """A `psrt.partition.parameter_specs.ParameterLike`; `shape` of a table is (1, width)."""

    name: str
    shape: Shape
    initializer: Initializer
    optimizer: Optimizer
    learning_rate: LearningRate
    seed: int
    sparse: bool
    padding_id: int | None = None
    options: TableOptions = DEFAULT_OPTIONS
    regularizer: Regularizer | None = None
    trainable: bool = True

    @property
    def distributed(self) -> bool:
        return self.sparse


Declared: TypeAlias = Iterable[DeclaredParameter]


def is_declared(parameter: DeclaredParameter, known: Mapping[str, DeclaredParameter]) -> bool:
    """True if `known` has it; raises `ProgramError` for another declaration of its name."""
    if known.get(parameter.name, parameter) != parameter:
        raise ProgramError(
            f"{parameter.name} was declared twice, and differently.",
            hint="A shared table has one width, optimizer, initializer and padding id. Give "
            "another table another name.",
        )
    return parameter.name in known


def dense_of(
    name: str, shape: Shape, optimizer: ServerOptimizer, seed: int = 0
) -> DeclaredParameter:
    """The declaration of a dense parameter, whose first values are given by trainer 0."""
    rate = ConstantRate(float(optimizer.lr))
    return DeclaredParameter(
        name, shape or (1,), Constant(0.0), optimizer.rule, rate, seed, sparse=False
    )


def table_of(
    name: str,
    width: int,
    optimizer: ServerOptimizer,
    initializer: Initializer,
    seed: int,
    padding_id: int | None = None,
    options: TableOptions = DEFAULT_OPTIONS,
) -> DeclaredParameter:
    """The declaration of a table; its first values depend on `seed` and its name."""
    rate = ConstantRate(float(optimizer.lr))
    own = (seed * 0x9E3779B1 + zlib.crc32(name.encode())) & 0x7FFFFFFF
    shape = (1, width)
    return DeclaredParameter(
        name, shape, initializer, optimizer.rule, rate, own, True, padding_id, options
    )
