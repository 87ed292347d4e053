"""W1's network in loops of torch: tables on pservers, torch's own under DDP, torch's RPC server.

Each function is a rank: it trains for some seconds and returns the figures of its `Stopwatch`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import psrt.torch as pt
from benchmarks.measuring.harness import Figures
from benchmarks.w1_ctr import Stopwatch
from benchmarks.workloads import ctr_data
from psrt.core.specs import Uniform

RATE, TABLE_RATE = 0.1, 5.0
"""Of the dense layers and of the table, as in W1."""

BATCHES = 300
FIRST = 0.05
"""First values of the table are uniform between −FIRST and FIRST."""

Batch: TypeAlias = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
Step: TypeAlias = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], float]


class Network(torch.nn.Module):
    """The layers of W1 over `table`, a bag of one id."""

    def __init__(self, table: torch.nn.Module) -> None:
        super().__init__()
        self.table: torch.nn.Module = table
        self.layers: torch.nn.Module = layers()

    def forward(self, ids: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        rows = self.table(ids.view(-1, 1)).view(len(ids), -1)
        found: torch.Tensor = self.layers(torch.cat([rows, numbers], dim=1))
        return found


def layers() -> torch.nn.Sequential:
    widths = (ctr_data.SLOTS * ctr_data.WIDTH + ctr_data.DENSE, *ctr_data.HIDDEN)
    made: list[torch.nn.Module] = []
    for before, after in itertools.pairwise(widths):
        made += [torch.nn.Linear(before, after), torch.nn.ReLU()]
    return torch.nn.Sequential(*made, torch.nn.Linear(widths[-1], 1))


def torch_table() -> torch.nn.EmbeddingBag:
    table = torch.nn.EmbeddingBag(ctr_data.ROWS, ctr_data.WIDTH, mode="sum", sparse=True)
    torch.nn.init.uniform_(table.weight, -FIRST, FIRST)
    return table


def psrt_table(optimizer: pt.optim.ServerOptimizer | None = None) -> pt.EmbeddingBag:
    rule = optimizer or pt.optim.SGD(TABLE_RATE)
    first = Uniform(-FIRST, FIRST)
    return pt.EmbeddingBag(ctr_data.WIDTH, "items", "sum", optimizer=rule, init=first)


def step_of(model: torch.nn.Module, *optimizers: torch.optim.Optimizer) -> Step:
    """An ordinary step: loss, backward, and a step of each optimizer."""

    def step(ids: torch.Tensor, numbers: torch.Tensor, click: torch.Tensor) -> float:
        for each in optimizers:
            each.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(ids, numbers), click)
        loss.backward()
        for each in optimizers:
            each.step()
        return float(loss.detach())

    return step


def batches_of(rank: int) -> Iterator[Batch]:
    """Batches of W1 as tensors, over and over."""
    ids, numbers, click = zip(*ctr_data.w1_batches(rank, BATCHES), strict=True)
    each = zip(*(map(torch.from_numpy, part) for part in (ids, numbers, click)), strict=True)
    return itertools.cycle(list(each))


def trained(step: Step, given: Iterable[Batch], seconds: float, together: bool) -> Figures:
    """Train until the time is over; ranks end `together` at one step."""
    watch = Stopwatch(seconds)
    for number, batch in enumerate(given):
        watch.step(step(*batch))
        if together and number % 20 < 19:
            continue
        if _is_over(watch, together):
            return watch.figures()
    raise AssertionError("a cycle of batches never ends")


def _is_over(watch: Stopwatch, together: bool) -> bool:
    flag = torch.tensor(float(watch.is_over.is_set()))
    if together:
        dist.all_reduce(flag)
    return bool(flag.item())


@contextmanager
def group(rank: int, size: int, at: str) -> Iterator[None]:
    """A process group over gloo that meets at `at`."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo", f"tcp://{at}", rank=rank, world_size=size)
    yield
    dist.barrier()  # a group that ends while a call drops its tensors can wait for itself
    dist.destroy_process_group()


def ddp_rank(rank: int, size: int, at: str, seconds: float) -> Figures:
    """Dense and sparse gradients travel by DDP."""
    with group(rank, size, at):
        network = Network(torch_table())
        groups = [
            {"params": list(network.layers.parameters())},
            {"params": list(network.table.parameters()), "lr": TABLE_RATE},
        ]
        optimizer = torch.optim.SGD(groups, RATE)
        step = step_of(DistributedDataParallel(network), optimizer)
        return trained(step, batches_of(rank), seconds, together=True)


def psrt_rank(rank: int, size: int, at: str, seconds: float, endpoints: str, mode: str) -> Figures:
    """Dense gradients travel by DDP, rows by pservers."""
    places = {"trainer_id": rank, "trainers": size}
    with group(rank, size, at), pt.connect(endpoints, mode, job_id="w10", **places):
        network = Network(psrt_table())
        dense = torch.optim.SGD(network.parameters(), RATE)
        model = DistributedDataParallel(network)
        step = step_of(model, dense, pt.TableOptimizer(network))
        return trained(step, _ahead(rank, network), seconds, together=True)


def served_rank(
    rank: int, size: int, at: str, seconds: float, endpoints: str, mode: str
) -> Figures:
    """Rows and dense parameters are on pservers; ranks do not know each other.

    Outside of sync each push counts whole, as torch's RPC server counts it.
    """
    torch.set_num_threads(1)
    torch.manual_seed(1)
    with pt.connect(endpoints, mode, job_id="w10", trainer_id=rank, trainers=size):
        network = Network(psrt_table())
        network.layers = pt.DenseOnServer(network.layers, pt.optim.SGD(RATE))
        reduce = "mean" if mode == "sync" else "sum"
        step = step_of(network, pt.TableOptimizer(network, reduce))
        return trained(step, _ahead(rank, network), seconds, together=False)


def _ahead(rank: int, network: torch.nn.Module) -> Iterable[Batch]:
    return pt.Prefetch(batches_of(rank), network, ids=lambda batch: {"items": batch[0]})
