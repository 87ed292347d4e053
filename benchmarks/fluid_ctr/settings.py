"""Settings that all sides of the comparison have in common."""

from __future__ import annotations

from dataclasses import dataclass

DENSE, SLOTS = 13, 26
HEIGHT, WIDTH = 1_000_001, 10
"""Rows of the one table and their width, as in the model zoo."""
HIDDEN = 400, 400, 400
BINS = 4096
"""Thresholds of an AUC while training."""


@dataclass(frozen=True)
class Settings:
    """One training by Adam. Rows begin with uniform numbers between -`range` and `range`.

    In the model zoo `range` is 1, in `examples/ctr_dnn` 0.01.
    """

    mode: str = "sync"
    range: float = 0.01
    rate: float = 0.001
    batch: int = 256
    epochs: int = 1
    update_frequency: int = 20
    pservers: int = 2
    trainers: int = 2
