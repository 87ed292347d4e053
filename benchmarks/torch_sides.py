"""The two sides of W8: one model trained by psrt and by torch, from the same initial parameters.

Both sides take the same batches as numpy arrays, and give their parameters by the same names. Each
optimizer is declared twice with equal numbers.

Tables are sparse in psrt. SGD and Adagrad leave rows without a gradient as they are, so torch may
have sparse gradients too. Adam by its formula moves all rows at every step: psrt with
lazy_mode=False, torch with dense gradients. Lazy Adam is there for its speed alone: psrt counts the
updates of each row, `torch.optim.SparseAdam` those of the table, and the bias corrections differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

import psrt
from benchmarks.torch_models import Feed, Model
from psrt.executor.derived import DerivedIds
from psrt.graph.optimizer import Declaration

TRAIN = ("forward", "backward", "optimize")
RATE = {"sgd": 0.1, "adagrad": 0.01, "adam": 0.001}


@dataclass(frozen=True)
class Optimizer:
    """The same optimizer of both libraries; torch may have several, for parts of a module."""

    declare: Callable[[], Declaration]
    make: Callable[[nn.Module], list[torch.optim.Optimizer]]
    is_sparse: bool = True


def _sgd(module: nn.Module) -> list[torch.optim.Optimizer]:
    return [torch.optim.SGD(module.parameters(), RATE["sgd"])]


def _adagrad(module: nn.Module) -> list[torch.optim.Optimizer]:
    return [torch.optim.Adagrad(module.parameters(), RATE["adagrad"], eps=EPSILON)]


def _adam(module: nn.Module) -> list[torch.optim.Optimizer]:
    return [torch.optim.Adam(module.parameters(), RATE["adam"])]


def _lazy_adam(module: nn.Module) -> list[torch.optim.Optimizer]:
    tables = [each.weight for each in module.modules() if isinstance(each, nn.Embedding)]
    others = [p for p in module.parameters() if all(p is not table for table in tables)]
    made: list[torch.optim.Optimizer] = [torch.optim.SparseAdam(tables, RATE["adam"])]
    return [*made, torch.optim.Adam(others, RATE["adam"])] if others else made


EPSILON = 1e-10
OPTIMIZERS = {
    "sgd": Optimizer(lambda: psrt.optimizer.Sgd(RATE["sgd"]), _sgd),
    "adagrad": Optimizer(lambda: psrt.optimizer.Adagrad(RATE["adagrad"], EPSILON), _adagrad),
    "adam": Optimizer(
        lambda: psrt.optimizer.Adam(RATE["adam"], lazy_mode=False), _adam, is_sparse=False
    ),
}
LAZY_ADAM = Optimizer(lambda: psrt.optimizer.Adam(RATE["adam"]), _lazy_adam)


class PsrtSide:
    """psrt trains the model in this process; `feeds` are batches, with the ids that it draws."""

    def __init__(
        self, model: Model, optimizer: Optimizer, batches: int, dtype: str = "float32"
    ) -> None:
        with psrt.program(seed=1) as self.program:
            self.loss = model.build()
            optimizer.declare().minimize(self.loss)
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
        return float(loss)  # type: ignore[arg-type]

    def parameters(self) -> dict[str, np.ndarray]:
        """Copies of all parameters."""
        return {name: self.scope[name].copy() for name in self.program.parameters}


class TorchSide:
    """torch trains the same model from the `initial` parameters of psrt."""

    def __init__(self, model: Model, optimizer: Optimizer, initial: dict[str, np.ndarray]) -> None:
        self.module = model.module(optimizer.is_sparse)
        state = {name: torch.from_numpy(self._turned(name, w)) for name, w in initial.items()}
        (dtype,) = {weight.dtype for weight in state.values()}
        self.module.to(dtype).load_state_dict(state)
        self.optimizers = optimizer.make(self.module)

    def step(self, feed: Feed) -> float:
        loss: Tensor = self.module({name: torch.from_numpy(x) for name, x in feed.items()})
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        for optimizer in self.optimizers:
            optimizer.step()
        return loss.item()

    def parameters(self) -> dict[str, np.ndarray]:
        state = self.module.state_dict()
        return {name: self._turned(name, w.numpy()).copy() for name, w in state.items()}

    def _turned(self, name: str, weight: np.ndarray) -> np.ndarray:
        """Weights of `nn.Linear` are (out, in), those of psrt (in, out)."""
        layer, _, kind = name.rpartition(".")
        is_turned = kind == "weight" and isinstance(self.module.get_submodule(layer), nn.Linear)
        return weight.T if is_turned else weight


def largest_differences(
    found: dict[str, np.ndarray], expected: dict[str, np.ndarray]
) -> dict[str, float]:
    """max |a − b| / max |b| of each parameter, compared in float64."""
    assert found.keys() == expected.keys(), found.keys() ^ expected.keys()
    tiny = float(np.finfo(np.float32).tiny)
    differences = {}
    for name, b in expected.items():
        away = np.abs(found[name].astype(np.float64) - b)
        differences[name] = float(away.max() / max(np.abs(b).max(), tiny))
    return differences
