"""Server-side optimizers, named and parametrised as those of `torch.optim`.

    pt.EmbeddingBag(16, "item", optimizer=pt.optim.Adagrad(lr=0.05))

Each computes what the class of that name in `torch.optim` computes (`RowWiseAdagrad`: the one of
TorchRec), on every row of the table. `lr` is the first value of the table's group in
`TableOptimizer`, where schedulers change it; the other numbers are fixed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from psrt.core import specs
from psrt.core.errors import ProgramError


@dataclass(frozen=True)
class ServerOptimizer:
    """A formula and the first learning rate."""

    rule: specs.Optimizer
    lr: float

    def __post_init__(self) -> None:
        if not (isinstance(self.lr, int | float) and math.isfinite(self.lr) and self.lr >= 0):
            raise ProgramError(
                f"an optimizer of tables was given lr={self.lr!r}.",
                hint="Give a finite number from 0 on.",
            )


def checked_rule(name: str, given: object) -> ServerOptimizer:
    """The optimizer of the parameters `name`; raises `ProgramError` for what is none of this
    module's."""
    if isinstance(given, ServerOptimizer):
        return given
    raise ProgramError(
        f"{name} was declared with optimizer {given!r}; nothing was made.",
        hint="Pservers update its parameters: give one of psrt.torch.optim, as pt.optim.Adagrad("
        "lr=0.05).",
    )


def SGD(lr: float = 1e-3, momentum: float = 0.0, nesterov: bool = False) -> ServerOptimizer:
    """w −= lr · g; with `momentum`, by the velocity of each row that is in the batch."""
    if momentum:
        return ServerOptimizer(specs.Momentum(momentum, nesterov), lr)
    return ServerOptimizer(specs.Sgd(), lr)


def Adagrad(
    lr: float = 1e-2, initial_accumulator_value: float = 0.0, eps: float = 1e-10
) -> ServerOptimizer:
    """s += g²; w −= lr · g / (√s + eps)."""
    return ServerOptimizer(specs.Adagrad(eps, initial_accumulator_value), lr)


def RowWiseAdagrad(
    lr: float = 1e-2, initial_accumulator_value: float = 0.0, eps: float = 1e-10
) -> ServerOptimizer:
    """Adagrad with one s for each row, s += mean of g²: a float per row instead of one per weight.

    The class of this name in `torchrec.optim`.
    """
    return ServerOptimizer(specs.RowWiseAdagrad(eps, initial_accumulator_value), lr)


def Adam(
    lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8
) -> ServerOptimizer:
    """Adam of all rows: one without a gradient moves by its momentum, which takes time for each."""
    return ServerOptimizer(specs.Adam(*_decays(betas), eps, lazy=False), lr)


def LazyAdam(
    lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8
) -> ServerOptimizer:
    """Adam of the rows that are in the batch, each with a count of its own for bias correction.

    `torch.optim.SparseAdam` counts the steps of the whole table there instead.
    """
    return ServerOptimizer(specs.Adam(*_decays(betas), eps, lazy=True), lr)


def _decays(betas: tuple[float, float]) -> tuple[float, float]:
    if not all(0 <= beta < 1 for beta in betas):
        raise ProgramError(
            f"an optimizer of tables was given betas={betas!r}.", hint="Each is from 0 to below 1."
        )
    return betas


__all__ = ["SGD", "Adagrad", "Adam", "LazyAdam", "RowWiseAdagrad", "ServerOptimizer"]
