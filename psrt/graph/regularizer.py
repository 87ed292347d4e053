"""Regularisation, public as `psrt.regularizer`: terms added to gradients to keep weights small.

Declared for all parameters of an optimizer (`regularization=`), or for one (`Param(regularizer=)`),
which overrides the optimizer's. Of a sparse table only the rows of the step are regularised.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from psrt.core.specs import L1Decay, L2Decay, Regularizer
from psrt.graph.names import refuse_unknown

__all__ = ["L1Decay", "L2Decay", "Regularizer"]

if not TYPE_CHECKING:  # type checkers report unknown names themselves
    __getattr__ = refuse_unknown("psrt.regularizer", "regularizer", __all__)
