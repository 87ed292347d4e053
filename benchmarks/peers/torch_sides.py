"""One model, trained by psrt and by torch from equal initial parameters.

Both sides take equal batches as numpy arrays, and their parameters have equal names. Each optimizer
is declared twice with equal numbers. epsilon is 1e-6, psrt's default for Adagrad. With torch's
1e-10 a gradient of pure rounding error moves a weight by the whole rate, in either direction.

Tables are sparse in psrt. SGD and Adagrad do not change rows without a gradient, so torch's
gradients can be sparse, too. Adam's formula changes all rows in every step: psrt uses
lazy_mode=False, torch dense gradients and its fused form, which is far faster on tables. Lazy Adam
is compared in speed only: psrt counts the updates of each row, torch's `SparseAdam` those of the
table, and the bias corrections differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

import psrt
from benchmarks.peers.torch_models import Feed, Model
from psrt.executor.program.derived import DerivedIds
from psrt.graph.optimizer import Declaration

TRAIN = ("forward", "backward", "optimize")
RATE, EPSILON = 0.001, 1e-6

Optimizers = list[torch.optim.Optimizer]


@dataclass(frozen=True)
class Twin:
    """An optimizer in both libraries; torch may need two, for tables and for the rest."""

    declare: Callable[[Model], Declaration]
    make: Callable[[Model, nn.Module], Optimizers]
    is_sparse: bool = True
    must_agree: bool = True


def _sgd(model: Model, module: nn.Module) -> Optimizers:
    return [torch.optim.SGD(module.parameters(), model.sgd_rate)]


def _adagrad(model: Model, module: nn.Module) -> Optimizers:
    return [torch.optim.Adagrad(module.parameters(), RATE, eps=EPSILON)]


def _adam(model: Model, module: nn.Module) -> Optimizers:
    return [torch.optim.Adam(module.parameters(), RATE, eps=EPSILON, fused=True)]


def _lazy_adam(model: Model, module: nn.Module) -> Optimizers:
    tables = [each.weight for each in module.modules() if isinstance(each, nn.Embedding)]
    rest = [p for p in module.parameters() if all(p is not table for table in tables)]
    made: Optimizers = [torch.optim.SparseAdam(tables, RATE, eps=EPSILON)] if tables else []
    return [*made, torch.optim.Adam(rest, RATE, eps=EPSILON, fused=True)] if rest else made


TWINS = {
    "sgd": Twin(lambda model: psrt.optimizer.Sgd(model.sgd_rate), _sgd),
    "adagrad": Twin(lambda _: psrt.optimizer.Adagrad(RATE, epsilon=EPSILON), _adagrad),
    "adam": Twin(
        lambda _: psrt.optimizer.Adam(RATE, epsilon=EPSILON, lazy_mode=False),
        _adam,
        is_sparse=False,
    ),
    "lazy_adam": Twin(
        lambda _: psrt.optimizer.Adam(RATE, epsilon=EPSILON), _lazy_adam, must_agree=False
    ),
}


class PsrtSide:
    """The model in psrt, in this process; `feeds` are batches with the ids that psrt samples."""

    def __init__(self, model: Model, twin: Twin, batches: int, dtype: str = "float32") -> None:
        with psrt.program(seed=1) as self.program:
            self.loss = model.build()
            twin.declare(model).minimize(self.loss)
        self.scope = psrt.Scope()
        self.scope.init_parameters(self.program, dtype)
        self.executor = psrt.Executor(self.program, self.scope, dtype=dtype)
        derived = DerivedIds(self.program)
        drawn = (derived.extend(feed, step) for step, feed in enumerate(model.feeds(batches)))
        self.feeds: list[Feed] = [
            {name: x.astype(dtype) if x.dtype == np.float32 else x for name, x in feed.items()}
            for feed in drawn
        ]

    def step(self, feed: Feed) -> float:
        """Train on a batch; returns its loss."""
        (loss,) = self.executor.run(feed, [self.loss], roles=TRAIN)
        return float(loss)

    def parameters(self) -> dict[str, np.ndarray]:
        """Copies of all parameters."""
        return {name: self.scope[name].copy() for name in self.program.parameters}


class TorchSide:
    """The model in torch, from the `initial` parameters of psrt and in their precision."""

    def __init__(self, model: Model, twin: Twin, initial: dict[str, np.ndarray]) -> None:
        self.module = model.module(twin.is_sparse)
        state = {name: torch.from_numpy(self._turned(name, w)) for name, w in initial.items()}
        (dtype,) = {weight.dtype for weight in state.values()}
        self.module.to(dtype).load_state_dict(state)
        self.optimizers = twin.make(model, self.module)

    def step(self, feed: Feed) -> float:
        """Train on a batch; returns its loss."""
        loss: Tensor = self.module({name: torch.from_numpy(x) for name, x in feed.items()})
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in self.optimizers:
            optimizer.step()
        return loss.item()

    def parameters(self) -> dict[str, np.ndarray]:
        """Copies of all parameters, in psrt's shapes."""
        state = self.module.state_dict()
        return {name: self._turned(name, w.numpy()).copy() for name, w in state.items()}

    def _turned(self, name: str, weight: np.ndarray) -> np.ndarray:
        """Transpose a weight of `nn.Linear`: (out, in) in torch, (in, out) in psrt."""
        layer, _, kind = name.rpartition(".")
        is_turned = kind == "weight" and isinstance(self.module.get_submodule(layer), nn.Linear)
        return weight.T if is_turned else weight


def differences(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> dict[str, float]:
    """max |a − b| / max |b| of each parameter."""
    assert found.keys() == expected.keys(), found.keys() ^ expected.keys()
    tiny = float(np.finfo(np.float32).tiny)
    return {
        name: float(np.abs(found[name] - b).max() / max(np.abs(b).max(), tiny))
        for name, b in expected.items()
    }
