"""Specs of the tables that hold the parameters of a program.

A pserver reads no program: a spec holds everything that a table needs (`psrt.core.specs`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol, TypeVar

from psrt.core.errors import ConfigError, ErrorCode, ProgramError
from psrt.core.specs import (
    Add,
    ConstantRate,
    DenseTableSpec,
    Initializer,
    LearningRate,
    Optimizer,
    Regularizer,
    Sgd,
    SparseTableSpec,
    TableOptions,
    option_problems,
)
from psrt.core.types import Shape
from psrt.partition.slicing import Block

Spec = TypeVar("Spec", DenseTableSpec, SparseTableSpec)


class ParameterLike(Protocol):
    """The attributes of a parameter that a plan reads; `psrt.graph.program.Parameter` has them."""

    @property
    def name(self) -> str: ...
    @property
    def shape(self) -> Shape: ...
    @property
    def initializer(self) -> Initializer: ...
    @property
    def sparse(self) -> bool: ...
    @property
    def distributed(self) -> bool: ...
    @property
    def padding_id(self) -> int | None: ...
    @property
    def options(self) -> TableOptions: ...
    @property
    def seed(self) -> int: ...
    @property
    def optimizer(self) -> Optimizer | None: ...
    @property
    def learning_rate(self) -> LearningRate | None: ...
    @property
    def regularizer(self) -> Regularizer | None: ...
    @property
    def trainable(self) -> bool: ...


def dense_spec(block: Block, parameter: ParameterLike, bucket: int) -> DenseTableSpec:
    """The table of one block; raises `ProgramError` for a parameter without an optimizer."""
    optimizer, rate = _rule(parameter)
    return DenseTableSpec(
        name=block.name,
        parameter=block.parameter,
        shape=tuple(parameter.shape),
        offset=block.offset,
        size=block.size,
        initializer=parameter.initializer,
        optimizer=optimizer,
        learning_rate=rate,
        seed=parameter.seed,
        regularizer=parameter.regularizer,
        section=bucket,
    )


def sparse_spec(parameter: ParameterLike) -> SparseTableSpec:
    """The table of a sparse or distributed parameter of shape (height, width).

    Raises `ProgramError` for another shape or without an optimizer, `ConfigError` for options that
    contradict each other.
    """
    if len(parameter.shape) != 2:
        raise ProgramError(
            f"sparse parameter {parameter.name} has shape {parameter.shape}; "
            "a table of rows needs (height, width)",
            code=ErrorCode.SHAPE_MISMATCH,
        )
    optimizer, rate = _rule(parameter)
    options = parameter.options
    for problem in option_problems(options, parameter.shape[1]):
        raise ConfigError(
            f"table {parameter.name} cannot be placed: {problem}",
            hint="docs/reference/tables.md lists all options and their limits.",
        )
    return SparseTableSpec(
        name=parameter.name,
        width=parameter.shape[1],
        initializer=parameter.initializer,
        optimizer=optimizer,
        learning_rate=rate,
        seed=parameter.seed,
        padding_id=parameter.padding_id,
        regularizer=parameter.regularizer,
        admission=options.admission,
        score=options.score,
        lifecycle=options.lifecycle,
        growth=options.growth,
        storage=options.storage,
    )


def adding(spec: Spec) -> Spec:
    """`spec` for mode Geo: the table adds the changes that trainers push."""
    return replace(spec, optimizer=Add(), learning_rate=ConstantRate(1.0), regularizer=None)


def check_for_geo(spec: SparseTableSpec, mode: str = "Geo") -> None:
    """Raise `ConfigError` for options with which a pserver would refuse, grow or drop rows.

    In Geo, and without pservers, every trainer holds its own rows.
    """
    given = [name for name in ("admission", "lifecycle", "growth") if getattr(spec, name)]
    if given:
        raise ConfigError(
            f"table {spec.name} has {' and '.join(given)}, and the job runs in mode {mode}, where "
            "trainers hold the rows they train",
            hint="Leave these options out, or run the job in another mode.",
        )


def _rule(parameter: ParameterLike) -> tuple[Optimizer, LearningRate]:
    """The optimizer and rate that a pserver applies; an untrained table gets rate 0."""
    if not parameter.trainable:
        return Sgd(), ConstantRate(0.0)
    if parameter.optimizer is None or parameter.learning_rate is None:
        raise ProgramError(
            f"parameter {parameter.name} has no optimizer",
            hint="Call minimize(loss) of an optimizer before the program is partitioned.",
        )
    return parameter.optimizer, parameter.learning_rate


__all__ = ["ParameterLike", "adding", "check_for_geo", "dense_spec", "sparse_spec"]
