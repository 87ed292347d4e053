"""The published formula of every optimizer, in float64 and plain numpy: what psrt is held against.

State begins as the papers say. Norms run over the last axis: of a flat array they are those of the
whole parameter, of rows (n, width) those of each row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psrt.core import specs

Array = np.ndarray

OPTIMIZERS: dict[str, specs.Optimizer] = {
    "sgd": specs.Sgd(),
    "momentum": specs.Momentum(0.8),
    "nesterov": specs.Momentum(0.8, nesterov=True),
    "adagrad": specs.Adagrad(initial_accumulator=0.1),
    "decayed_adagrad": specs.DecayedAdagrad(0.9),
    "adadelta": specs.Adadelta(0.9, 1e-4),
    "rms_prop": specs.RmsProp(0.9, momentum=0.5),
    "centered_rms_prop": specs.RmsProp(0.9, centered=True),
    "adam": specs.Adam(),
    "adam_of_all_rows": specs.Adam(lazy=False),
    "adamw": specs.AdamW(weight_decay=0.1),
    "adamw_of_all_rows": specs.AdamW(weight_decay=0.1, lazy=False),
    "adamax": specs.Adamax(),
    "ftrl": specs.Ftrl(l1=0.3, l2=0.2, initial_accumulator=0.1),
    "ftrl_of_another_power": specs.Ftrl(l1=0.3, l2=0.2, lr_power=-0.4, initial_accumulator=0.1),
    "lars_momentum": specs.LarsMomentum(0.8, lars_coeff=0.5, lars_weight_decay=0.1),
    "lamb": specs.Lamb(0.1),
    "add": specs.Add(),
}
CTR: dict[str, specs.Optimizer] = {
    "ctr_sgd": specs.CtrSgd(weight_min=-0.6, weight_max=0.5),
    "ctr_adagrad": specs.CtrAdagrad(2.0, weight_min=-0.6, weight_max=0.5),
    "ctr_std_adagrad": specs.CtrStdAdagrad(2.0, weight_min=-0.6, weight_max=0.5),
    "ctr_adam": specs.CtrAdam(weight_min=-0.6, weight_max=0.5),
    "ctr_shared_adam": specs.CtrSharedAdam(weight_min=-0.6, weight_max=0.5),
}
ROW_WISE: dict[str, specs.Optimizer] = {
    "row_wise_adagrad": specs.RowWiseAdagrad(1e-4, initial_accumulator=0.1)
}
LAZY = {name: spec for name, spec in OPTIMIZERS.items() if getattr(spec, "lazy", True)}
EAGER = {name: spec for name, spec in OPTIMIZERS.items() if name not in LAZY}
ELEMENT_WISE = {
    name: spec for name, spec in OPTIMIZERS.items() if not isinstance(spec, specs.LAYER_WISE)
}


class Published:
    """Weights `w` (…) under one optimizer; `t` counts the updates."""

    def __init__(self, optimizer: specs.Optimizer, initial: Array) -> None:
        self.optimizer = optimizer
        self.w = np.array(initial, np.float64)
        self.a, self.b, self.c = (np.zeros_like(self.w) for _ in range(3))
        self.a += getattr(optimizer, "initial_accumulator", 0.0)
        self.t = 0

    def apply(self, gradient: Array, lr: float) -> None:
        self.t += 1
        g = np.asarray(gradient, np.float64)
        match self.optimizer:
            case specs.Sgd():
                self.w -= lr * g
            case specs.Add():
                self.w += g
            case specs.Momentum(momentum=mu, nesterov=nesterov):
                self.a = mu * self.a + g
                self.w -= lr * (g + mu * self.a) if nesterov else lr * self.a
            case specs.Adagrad(epsilon=eps):
                self.a += g**2
                self.w -= lr * g / (np.sqrt(self.a) + eps)
            case specs.RowWiseAdagrad(epsilon=eps):
                self.a = self.a + np.mean(g**2, axis=-1, keepdims=True)
                self.w -= lr * g / (np.sqrt(self.a) + eps)
            case specs.DecayedAdagrad(decay=decay, epsilon=eps):
                self.a = decay * self.a + (1 - decay) * g**2
                self.w -= lr * g / (np.sqrt(self.a) + eps)
            case specs.Adadelta(rho=rho, epsilon=eps):
                self.a = rho * self.a + (1 - rho) * g**2
                delta = -np.sqrt(self.b + eps) / np.sqrt(self.a + eps) * g
                self.b = rho * self.b + (1 - rho) * delta**2
                self.w += lr * delta
            case specs.RmsProp():
                self._rms_prop(self.optimizer, g, lr)
            case specs.Adam() | specs.AdamW():
                decay = getattr(self.optimizer, "weight_decay", 0.0)
                self.w -= lr * (self._adam_direction(self.optimizer, g) + decay * self.w)
            case specs.Adamax(beta1=beta1, beta2=beta2, epsilon=eps):
                self.a = beta1 * self.a + (1 - beta1) * g
                self.b = np.maximum(beta2 * self.b + eps, np.abs(g))
                self.w -= lr / (1 - beta1**self.t) * self.a / self.b
            case specs.Ftrl():
                self._ftrl(self.optimizer, g, lr)
            case specs.LarsMomentum(momentum=mu, lars_coeff=coeff, lars_weight_decay=decay):
                rate = lr * coeff * norm(self.w) / (norm(g) + decay * norm(self.w))
                self.a = mu * self.a + rate * (g + decay * self.w)
                self.w -= self.a
            case specs.Lamb(lamb_weight_decay=decay):
                u = self._adam_direction(self.optimizer, g) + decay * self.w
                self.w -= lr * norm(self.w) / norm(u) * u
            case _:
                self._ctr(self.optimizer, g, lr)

    def _ctr(self, spec: Any, g: Array, lr: float) -> None:
        """Shared state is a whole vector here, of equal numbers."""
        match spec:
            case specs.CtrSgd():
                self.w -= lr * g
            case specs.CtrAdagrad() | specs.CtrStdAdagrad():
                self.w -= lr * g * np.sqrt(spec.initial_g2sum / (spec.initial_g2sum + self.a))
                self.a += g**2
            case specs.CtrAdam() | specs.CtrSharedAdam():
                self.a = spec.beta1 * self.a + (1 - spec.beta1) * g
                self.b = spec.beta2 * self.b + (1 - spec.beta2) * g**2
                rate = lr * np.sqrt(1 - spec.beta2**self.t) / (1 - spec.beta1**self.t)
                self.w -= rate * self.a / (np.sqrt(self.b) + spec.epsilon)
        if isinstance(spec, specs.CtrAdagrad | specs.CtrSharedAdam):
            self.a = np.broadcast_to(self.a.mean(axis=-1, keepdims=True), g.shape).copy()
            self.b = np.broadcast_to(self.b.mean(axis=-1, keepdims=True), g.shape).copy()
        self.w = np.clip(self.w, spec.weight_min, spec.weight_max)

    def _rms_prop(self, spec: specs.RmsProp, g: Array, lr: float) -> None:
        self.a = spec.rho * self.a + (1 - spec.rho) * g**2
        self.c = spec.rho * self.c + (1 - spec.rho) * g
        variance = self.a - self.c**2 if spec.centered else self.a
        self.b = spec.momentum * self.b + lr * g / np.sqrt(variance + spec.epsilon)
        self.w -= self.b

    def _adam_direction(self, spec: specs.Adam | specs.AdamW | specs.Lamb, g: Array) -> Array:
        self.a = spec.beta1 * self.a + (1 - spec.beta1) * g
        self.b = spec.beta2 * self.b + (1 - spec.beta2) * g**2
        m_hat, v_hat = self.a / (1 - spec.beta1**self.t), self.b / (1 - spec.beta2**self.t)
        return m_hat / (np.sqrt(v_hat) + spec.epsilon)

    def _ftrl(self, spec: specs.Ftrl, g: Array, lr: float) -> None:
        """`b` is z of McMahan et al., `a` is n."""
        power = -spec.lr_power
        before, self.a = self.a, self.a + g**2
        sigma = (self.a**power - before**power) / lr
        self.b += g - sigma * self.w
        shrunk = -(self.b - np.sign(self.b) * spec.l1) / (self.a**power / lr + 2 * spec.l2)
        self.w = np.where(np.abs(self.b) > spec.l1, shrunk, 0.0)


def norm(x: Array) -> Array:
    return np.sqrt((x**2).sum(axis=-1, keepdims=True))
