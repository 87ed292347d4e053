"""A user's declaration of one parameter, and its checks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from psrt.core.attributes import PlainFields
from psrt.core.specs import (
    Initializer,
    LearningRate,
    Optimizer,
    TableOptions,
    formula_problems,
    is_float32,
)
from psrt.graph.clip import Clip, clip_problems
from psrt.graph.initializer import AnyInitializer, Msra, Xavier, fan_problems
from psrt.graph.regularizer import Regularizer


class Declared(Protocol):
    """The part of an optimizer's declaration that applies to a parameter of its own."""

    @property
    def spec(self) -> Optimizer: ...
    @property
    def learning_rate(self) -> LearningRate: ...


@dataclass(frozen=True)
class Param(PlainFields):
    """Declaration of a parameter; equal names share one parameter.

    `learning_rate` multiplies the optimizer's: embeddings often learn best at a higher one.
    `regularizer` and `clip` override the optimizer's, and `optimizer` (one of `psrt.optimizer`)
    overrides its formula and rate. `table` holds options of a sparse parameter: `psrt.tables`.
    `seed` is that of its initial values, by default one of the program's seed and its name. Layers
    raise `ProgramError` for unusable fields.
    """

    name: str = ""
    initializer: AnyInitializer | None = None
    trainable: bool = True
    learning_rate: float | None = None
    regularizer: Regularizer | None = None
    clip: Clip | None = None
    optimizer: Declared | None = None
    table: TableOptions | None = None
    seed: int | None = None


def param_problems(param: Any) -> Iterator[str]:
    """Yield the faults of a `Param`, in words that follow "the parameter:"."""
    if not isinstance(param.name, str):
        yield f"its name is {param.name!r}, not a text"
    if not isinstance(param.trainable, bool | int):
        yield f"trainable is {param.trainable!r}, not True or False"
    if param.learning_rate is not None and not is_float32(param.learning_rate):
        yield f"learning_rate is {param.learning_rate!r}, not a finite number of float32"
    if isinstance(param.initializer, Xavier | Msra):
        yield from fan_problems(param.initializer)
    elif param.initializer is not None:
        yield from formula_problems("initializer", param.initializer, Initializer)
    if param.regularizer is not None:
        yield from formula_problems("regularizer", param.regularizer, Regularizer)
    if param.clip is not None:
        yield from clip_problems(param.clip)
    if param.optimizer is not None and not _is_declared(param.optimizer):
        yield f"optimizer is {param.optimizer!r}, not one of psrt.optimizer"
    if not isinstance(param.seed, int | None) or (param.seed or 0) < 0:
        yield f"seed is {param.seed!r}, not a number from 0 on"
    if not isinstance(param.table, TableOptions | None):
        yield f"table is {param.table!r}, not a psrt.tables.TableOptions"


def _is_declared(optimizer: Any) -> bool:
    return hasattr(optimizer, "spec") and hasattr(optimizer, "learning_rate")
