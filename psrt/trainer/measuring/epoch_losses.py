"""The measures of one epoch, for callbacks."""

from __future__ import annotations

from dataclasses import dataclass

from psrt.trainer.measuring.metrics import Tally


@dataclass(frozen=True)
class EpochLosses:
    """Number of an epoch from 1, and the measures of its training and validation."""

    epoch: int
    train: Tally
    valid: Tally | None = None

    def text(self) -> str:
        """`epoch 1  loss 0.47  auc 0.74  valid loss 0.48  auc 0.73`."""
        valid = f"  valid {self.valid.text()}" if self.valid is not None else ""
        return f"epoch {self.epoch}  {self.train.text()}{valid}"
