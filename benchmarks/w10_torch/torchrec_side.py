"""W1's network by TorchRec on CPUs: its table sharded over the ranks as its planner decides.

Optimizer of the table in backward, dense layers by DDP, all over gloo. Needs the packages torchrec
and fbgemm-gpu-cpu of a release that fits torch.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist

from benchmarks.measuring.harness import Figures
from benchmarks.w10_torch import sides
from benchmarks.workloads import ctr_data

CPU = "cpu"


class Network(torch.nn.Module):
    """The layers of W1 over a collection with one feature, a bag of one id."""

    def __init__(self, table: torch.nn.Module, jagged: Any) -> None:
        super().__init__()
        self.table, self.layers, self._jagged = table, sides.layers(), jagged

    def forward(self, ids: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        lengths = torch.ones(ids.numel(), dtype=torch.int32)
        given = self._jagged(keys=["item"], values=ids.reshape(-1), lengths=lengths)
        rows = self.table(given).values().view(len(ids), -1)
        found: torch.Tensor = self.layers(torch.cat([rows, numbers], dim=1))
        return found


def rank_of(rank: int, size: int, at: str, seconds: float) -> Figures:
    """Train for some seconds beside the other ranks, which end at one step."""
    os.environ.update(_variables(rank, size, at))
    with sides.group(rank, size, at):
        model = _sharded(size)
        layers = [p for name, p in model.named_parameters() if ".layers." in f".{name}"]
        step = sides.step_of(model, torch.optim.SGD(layers, sides.RATE))
        return sides.trained(step, sides.batches_of(rank), seconds, together=True)


def _sharded(size: int) -> torch.nn.Module:
    torchrec: Any = importlib.import_module("torchrec")
    planners: Any = importlib.import_module("torchrec.distributed.planner")
    bags: Any = importlib.import_module("torchrec.distributed.embeddingbag")
    in_backward: Any = importlib.import_module("torch.distributed.optim")
    config = torchrec.EmbeddingBagConfig(
        name="item_rows",
        embedding_dim=ctr_data.WIDTH,
        num_embeddings=ctr_data.ROWS,
        feature_names=["item"],
        init_fn=lambda rows: torch.nn.init.uniform_(rows, -sides.FIRST, sides.FIRST),
    )
    table = torchrec.EmbeddingBagCollection(tables=[config], device=torch.device("meta"))
    network = Network(table, torchrec.KeyedJaggedTensor)
    rate = {"lr": sides.TABLE_RATE}
    in_backward._apply_optimizer_in_backward(torch.optim.SGD, table.parameters(), rate)
    sharders = [bags.EmbeddingBagCollectionSharder()]
    planner = planners.EmbeddingShardingPlanner(
        topology=planners.Topology(world_size=size, compute_device=CPU)
    )
    plan = planner.collective_plan(network, sharders, dist.group.WORLD)
    found: torch.nn.Module = torchrec.distributed.DistributedModelParallel(
        network, device=torch.device(CPU), plan=plan, sharders=sharders
    )
    return found


def _variables(rank: int, size: int, at: str) -> Mapping[str, str]:
    """Variables of torchrun, which TorchRec reads."""
    host, _, port = at.rpartition(":")
    places = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size}
    return {name: str(number) for name, number in places.items()} | {
        "MASTER_ADDR": host,
        "MASTER_PORT": port,
    }
