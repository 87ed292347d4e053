"""Step number, position in the batch and initial loss gradient of a compiled program.

A random number is a pure function of (seed of the op, step, example, position), so a run is
repeatable and replicas draw the numbers of one executor with the whole batch.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class StepContext:
    """`step` counts the batches run before this one, `first_example` the examples of the batch in
    replicas before this one. `loss_gradient` is d loss / d loss, the weight of a replica."""

    step: int = 0
    first_example: int = 0
    loss_gradient: float = 1.0
