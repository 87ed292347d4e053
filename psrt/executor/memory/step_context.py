"""Where in training a compiled program stands, and which part of a batch it sees.

A random number is a pure function of (seed of the op, step, example, position), so a run can be
repeated and replicas draw what one executor with the whole batch would draw.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class StepContext:
    """`step` counts the batches run before this one, `first_example` the examples of the batch
    that belong to replicas before this one. The gradient of the loss begins with `loss_gradient`,
    the weight of a replica."""

    step: int = 0
    first_example: int = 0
    loss_gradient: float = 1.0
