"""Regularisation, public as `psrt.regularizer`: terms added to gradients to keep weights small.

Declared for all parameters of an optimizer (`regularization=`), or for one (`Param(regularizer=)`),
which overrides the optimizer's. Of a sparse table only the rows of the step are regularised.
"""

from __future__ import annotations

from psrt.core.specs import L1Decay, L2Decay, Regularizer

__all__ = ["L1Decay", "L2Decay", "Regularizer"]
