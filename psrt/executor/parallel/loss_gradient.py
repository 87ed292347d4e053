"""The initial gradient of the loss in each replica, by the gradient scale strategy."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from psrt.core.errors import DataError, ProgramError
from psrt.core.tensors import Ragged
from psrt.core.types import Array
from psrt.executor.parallel.shares import BatchShare
from psrt.executor.program import Feed
from psrt.executor.strategies import GradientScaleStrategy
from psrt.graph.backward import loss_gradients
from psrt.graph.program import Program


@dataclass(frozen=True)
class LossGradient:
    """`name` is the var of d loss / d loss that users feed, "" for none; `fed` its value."""

    strategy: GradientScaleStrategy
    name: str = ""
    fed: Array | None = None

    @classmethod
    def of(cls, strategy: GradientScaleStrategy, program: Program) -> LossGradient:
        """The rule of all steps of a program; raises `ProgramError`."""
        names = loss_gradients(program)
        if strategy is not GradientScaleStrategy.Customized or not names:
            return cls(strategy)
        if len(names) > 1:
            raise ProgramError(
                f"The program has {len(names)} losses, so one array cannot start them all.",
                hint="Choose another gradient_scale_strategy than Customized.",
            )
        return cls(strategy, names[0])

    def fed_by(self, feed: Feed) -> LossGradient:
        """The rule with the value that one batch feeds; raises `DataError`."""
        if not self.name:
            return self
        return dataclasses.replace(self, fed=_numbers(feed.get(self.name), self.name))

    def without(self, feed: Feed) -> Feed:
        """The batch without the fed loss gradient."""
        if self.fed is None:
            return feed
        return {name: fed for name, fed in feed.items() if name != self.name}

    def for_share(self, share: BatchShare) -> float:
        """The value for a replica; a fed array holds one number, or one for each replica."""
        if self.fed is not None:
            return float(self.fed.reshape(-1)[min(share.number, self.fed.size - 1)])
        return share.weight if self.strategy is GradientScaleStrategy.CoeffNumDevice else 1.0


def _numbers(fed: Array | Ragged | None, name: str) -> Array:
    """The fed array; raises `DataError` unless it holds numbers."""
    numbers = np.empty(0) if fed is None or isinstance(fed, Ragged) else np.asarray(fed)
    if numbers.size and numbers.dtype.kind in "fiu":
        return numbers
    what = "does not feed" if fed is None else "feeds something else than numbers as"
    raise DataError(
        f"The batch {what} {name}, the initial gradient.",
        hint="Feed a scalar, or choose another gradient_scale_strategy than Customized.",
    )
