"""Regularisation by Fluid's names, for an optimizer's parameters or for one by ParamAttr."""

from __future__ import annotations

from psrt.graph import regularizer as _psrt


def L1Decay(regularization_coeff: float = 0.0) -> _psrt.L1Decay:
    """Add coeff · sign(w) to the gradient."""
    return _psrt.L1Decay(float(regularization_coeff))


def L2Decay(regularization_coeff: float = 0.0) -> _psrt.L2Decay:
    """Add coeff · w to the gradient."""
    return _psrt.L2Decay(float(regularization_coeff))


L1DecayRegularizer = L1Decay
L2DecayRegularizer = L2Decay

__all__ = ["L1Decay", "L1DecayRegularizer", "L2Decay", "L2DecayRegularizer"]
