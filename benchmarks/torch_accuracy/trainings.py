"""One epoch in PyTorch, in one process with psrt.torch, and as a rank of several: test AUC.

All begin with the same values, take the same batches in the same order, and update by Adagrad. A
rank has its share of each batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import psrt.torch as pt
from benchmarks.torch_accuracy.clicks import Clicks
from benchmarks.torch_accuracy.models import MODELS, WIDTH, Ranker
from psrt.core.specs import Uniform
from psrt.data.convert.synthetic import auc

BATCH, RATE, TABLE_RATE = 512, 0.004, 0.032
FIRST = Uniform(-0.05, 0.05)
Batch: TypeAlias = list[torch.Tensor]


def by_torch(model: str, train: Clicks, test: Clicks, seed: int) -> float:
    """Plain PyTorch: `EmbeddingBag(sparse=True)`, with the first values of a table of psrt."""
    height = int(max(train.ids.max(), test.ids.max())) + 1
    table = torch.nn.EmbeddingBag(height, WIDTH, mode="sum", sparse=True)
    with pt.local(seed=seed) as session:
        first = _table().table
        table.weight.data = torch.from_numpy(session.pull({first.name: np.arange(height)})["items"])
    ranker = _ranker(model, table, seed)
    tables = torch.optim.Adagrad(table.parameters(), TABLE_RATE)
    _train(ranker, ranker, [_dense(ranker), tables], batches(train, seed))
    return _tested(ranker, test)


def here(model: str, train: Clicks, test: Clicks, seed: int) -> float:
    """Tables of psrt.torch in this process."""
    with pt.local(seed=seed):
        ranker = _ranker(model, _table(), seed)
        optimizers = [_dense(ranker), pt.TableOptimizer(ranker)]
        _train(ranker, ranker, optimizers, batches(train, seed))
        return _tested(ranker, test)


def ranked(model: str, train: Clicks, test: Clicks, seed: int, mode: str) -> float:
    """A rank with tables on pservers and DDP, which `psrt.torch.connect` and torch find by
    variables; the AUC is that of the whole job."""
    dist.init_process_group("gloo")
    with pt.connect(mode=mode, seed=seed, job_id=f"{model}-{seed}"):
        ranker = _ranker(model, _table(), seed)
        optimizers = [_dense(ranker), pt.TableOptimizer(ranker)]
        places = dist.get_rank(), dist.get_world_size()
        _train(ranker, DistributedDataParallel(ranker), optimizers, batches(train, seed, *places))
        dist.barrier()
        found = _tested(ranker, test)
        dist.barrier()
    dist.destroy_process_group()
    return found


def batches(
    train: Clicks, seed: int, rank: int = 0, ranks: int = 1
) -> Iterator[list[torch.Tensor]]:
    """The share of a rank of each whole batch, in the order of the seed."""
    order = np.random.default_rng(seed).permutation(train.rows)
    share = BATCH // ranks
    for start in range(0, train.rows - BATCH + 1, BATCH):
        first = start + rank * share
        yield [torch.from_numpy(each) for each in train.part(order[first : first + share])]


def _table() -> pt.EmbeddingBag:
    return pt.EmbeddingBag(
        WIDTH, "items", "sum", optimizer=pt.optim.Adagrad(TABLE_RATE), init=FIRST
    )


def _ranker(model: str, table: torch.nn.Module, seed: int) -> Ranker:
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    return Ranker(table, MODELS[model]())


def _dense(ranker: Ranker) -> torch.optim.Optimizer:
    return torch.optim.Adagrad(ranker.layers.parameters(), RATE)


def _train(
    ranker: Ranker,
    model: torch.nn.Module,
    optimizers: list[torch.optim.Optimizer],
    given: Iterator[Batch],
) -> None:
    ranker.train()
    for ids, numbers, click in given:
        for each in optimizers:
            each.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(ids, numbers), click)
        loss.backward()
        for each in optimizers:
            each.step()


def _tested(ranker: Ranker, test: Clicks) -> float:
    ranker.eval()
    parts = [test.part(slice(start, start + 4096)) for start in range(0, test.rows, 4096)]
    with torch.no_grad():
        scores = [
            ranker(torch.from_numpy(part.ids), torch.from_numpy(part.numbers)) for part in parts
        ]
    found = torch.cat(scores)[:, 0].double().numpy()
    return float(auc(found, test.click[:, 0].astype(np.uint8)))
