"""Regularisation by Fluid's names: an optimizer's for all parameters, or a ParamAttr's for one."""

from __future__ import annotations

from psrt.graph import regularizer as _psrt


def L1Decay(regularization_coeff: float = 0.0) -> _psrt.L1Decay:
    """coeff · sign(w) is added to the gradient."""
    return _psrt.L1Decay(float(regularization_coeff))


def L2Decay(regularization_coeff: float = 0.0) -> _psrt.L2Decay:
    """coeff · w is added to the gradient."""
    return _psrt.L2Decay(float(regularization_coeff))


L1DecayRegularizer = L1Decay
L2DecayRegularizer = L2Decay

__all__ = ["L1Decay", "L1DecayRegularizer", "L2Decay", "L2DecayRegularizer"]
