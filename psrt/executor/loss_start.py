"""What the gradient of the loss begins with in each replica, by the gradient scale strategy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psrt.core.errors import DataError
from psrt.core.tensors import Ragged
from psrt.core.types import Array
from psrt.executor.feeds import Feed
from psrt.executor.shares import Share
from psrt.executor.strategies import GradientScaleStrategy
from psrt.graph.program import Program


@dataclass(frozen=True)
class LossStart:
    """`name` is the var of d loss / d loss, "" without a backward; `fed` is what a user gave it."""

    strategy: GradientScaleStrategy
    name: str
    fed: Array | None = None

    @classmethod
    def of(cls, strategy: GradientScaleStrategy, program: Program, feed: Feed) -> LossStart:
        starts = (op.outputs["out"][0] for op in program.ops if op.type == "ones_like")
        name = next(starts, "")
        if strategy is not GradientScaleStrategy.Customized or not name:
            return cls(strategy, name)
        fed = feed.get(name)
        if fed is None or isinstance(fed, Ragged):
            raise DataError(
                f"The batch does not feed {name}, which the gradient begins with.",
                hint="Feed a scalar, or choose another gradient_scale_strategy than Customized.",
            )
        return cls(strategy, name, np.asarray(fed))

    def without(self, feed: Feed) -> Feed:
        """The batch without the customized start."""
        if self.fed is None:
            return feed
        return {name: fed for name, fed in feed.items() if name != self.name}

    def for_share(self, share: Share) -> float:
        """For a replica; a fed array may hold one number, or one for each replica's share."""
        if self.fed is not None:
            return float(self.fed.reshape(-1)[min(share.number, self.fed.size - 1)])
        return share.weight if self.strategy is GradientScaleStrategy.CoeffNumDevice else 1.0
