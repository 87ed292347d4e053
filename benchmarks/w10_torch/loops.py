"""Loops of torch over one network, whose table is psrt's or torch's own."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator

import torch

import psrt.torch as pt

FEATURES, WIDTH, HEIGHT = 26, 16, 200_000


def network(table: torch.nn.Module) -> torch.nn.Module:
    """The dense layers over pooled rows; `table` maps ids (batch · 26, 1) to rows."""
    width = FEATURES * WIDTH
    return torch.nn.Sequential(
        table,
        torch.nn.Unflatten(0, (-1, FEATURES)),
        torch.nn.Flatten(1),
        torch.nn.Linear(width, 64),
        torch.nn.ReLU(),
        torch.nn.Linear(64, 1),
    )


def batches(count: int, size: int) -> list[torch.Tensor]:
    """Ids with the skew of clicks: the square of a uniform number is small often."""
    draw = torch.rand(count, size * FEATURES, 1).pow(3)
    return list((draw * HEIGHT).long())


@contextlib.contextmanager
def ours(optimizer: pt.optim.ServerOptimizer) -> Iterator[Callable[[torch.Tensor], None]]:
    with pt.local():
        model = network(pt.EmbeddingBag(WIDTH, "items", mode="sum", optimizer=optimizer))
        yield _step(model, pt.TableOptimizer(model))


@contextlib.contextmanager
def theirs(
    optimizer: Callable[..., torch.optim.Optimizer],
) -> Iterator[Callable[[torch.Tensor], None]]:
    table = torch.nn.EmbeddingBag(HEIGHT, WIDTH, mode="sum", sparse=True)
    yield _step(network(table), optimizer(table.parameters(), lr=0.01))


def _step(model: torch.nn.Module, tables: torch.optim.Optimizer) -> Callable[[torch.Tensor], None]:
    own = [p for name, p in model.named_parameters() if not name.startswith("0.")]
    dense = torch.optim.SGD(own, 0.01)

    def step(ids: torch.Tensor) -> None:
        model(ids).sigmoid().mean().backward()
        for each in (dense, tables):
            each.step()
            each.zero_grad()

    return step


VARIANTS = {
    "sgd": lambda: ours(pt.optim.SGD(0.01)),
    "torch_sgd": lambda: theirs(torch.optim.SGD),
    "lazy_adam": lambda: ours(pt.optim.LazyAdam(0.01)),
    "torch_sparse_adam": lambda: theirs(torch.optim.SparseAdam),
}
PAIRS = {"sgd": "torch_sgd", "lazy_adam": "torch_sparse_adam"}


def run(steps: int, size: int, repeats: int, threads: int) -> dict[str, object]:
    """Medians of steps per second by variant, and the ratios of psrt to torch."""
    torch.set_num_threads(threads)
    given, found = batches(steps, size), {name: [] for name in VARIANTS}
    with contextlib.ExitStack() as stack:
        each = {name: stack.enter_context(made()) for name, made in VARIANTS.items()}
        for repeat in range(repeats + 1):
            for name, step in each.items():
                begun = time.perf_counter()
                for ids in given:
                    step(ids)
                if repeat:  # the first one loads kernels and makes rows
                    found[name].append(steps / (time.perf_counter() - begun))
    rates = {name: round(statistics.median(values), 2) for name, values in found.items()}
    ratios = {f"{one}/{two}": round(rates[one] / rates[two], 3) for one, two in PAIRS.items()}
    return {"steps_per_s": rates, "ratios": ratios, "batch": size, "threads": threads}
