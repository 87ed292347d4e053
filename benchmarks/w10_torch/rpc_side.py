"""A parameter server by `torch.distributed.rpc`, as PyTorch's tutorial writes it: W1's network.

Servers hold the rows whose id has their number as its remainder, and their share of the dense
parameters, balanced by size. Workers pull and push asynchronously, each id of a batch once.
"""

from __future__ import annotations

import os
import time
from typing import Any

import torch
import torch.distributed.rpc as rpc

from benchmarks.measuring.harness import Figures
from benchmarks.w10_torch import sides
from benchmarks.workloads import ctr_data

THREADS, TIMEOUT_S = 4, 60


class Held:
    """Parameters of this server: `rows` (n, width) of a table, and dense ones."""

    rows = torch.empty(0)
    parameters: list[torch.Tensor] = []  # noqa: RUF012


def pull(at: torch.Tensor) -> torch.Tensor:
    return Held.rows.index_select(0, at)


def push(at: torch.Tensor, gradient: torch.Tensor) -> None:
    Held.rows.index_add_(0, at, gradient, alpha=-sides.TABLE_RATE)


def pull_dense() -> list[torch.Tensor]:
    return Held.parameters


def push_dense(gradients: list[torch.Tensor]) -> None:
    for parameter, gradient in zip(Held.parameters, gradients, strict=True):
        parameter.add_(gradient, alpha=-sides.RATE)


def server(number: int, servers: int, workers: int, at: str, carrier: str) -> Figures:
    """Hold rows and parameters until all workers have ended."""
    torch.set_num_threads(1)
    _hold(number, servers)
    _join(f"server{number}", number, servers + workers, at, carrier)
    cpu_s = time.process_time()
    rpc.shutdown()
    return {"cpu_s": time.process_time() - cpu_s}


def worker(rank: int, servers: int, workers: int, at: str, carrier: str, seconds: float) -> Figures:
    """Train for some seconds beside the other workers."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    layers = sides.layers()
    parts = _balanced(list(layers.parameters()), servers)
    _join(f"worker{rank}", servers + rank, servers + workers, at, carrier)
    found = sides.trained(_step(layers, parts), sides.batches_of(rank), seconds, together=False)
    rpc.shutdown()
    return found


def _hold(number: int, servers: int) -> None:
    """Make the rows of a server, and its share of the parameters, before anybody can ask."""
    torch.manual_seed(1)
    parts = _balanced(list(sides.layers().parameters()), servers)
    Held.parameters = [each.detach() for each in parts[number]]
    rows = -(-ctr_data.ROWS // servers)
    Held.rows = torch.empty(rows, ctr_data.WIDTH).uniform_(-sides.FIRST, sides.FIRST)


def _step(layers: torch.nn.Module, parts: list[list[torch.Tensor]]) -> sides.Step:
    names = [f"server{number}" for number in range(len(parts))]

    def step(ids: torch.Tensor, numbers: torch.Tensor, click: torch.Tensor) -> float:
        distinct, positions = torch.unique(ids.view(-1), return_inverse=True)
        owner = distinct % len(names)
        own = [(owner == number).nonzero()[:, 0] for number in range(len(names))]
        at = [distinct[each] // len(names) for each in own]
        asked = [rpc.rpc_async(name, pull, (rows,)) for name, rows in zip(names, at, strict=True)]
        dense = [rpc.rpc_async(name, pull_dense) for name in names]
        rows = torch.empty(len(distinct), ctr_data.WIDTH)
        for each, answer in zip(own, asked, strict=True):
            rows[each] = answer.wait()
        _copy(dense, parts)
        rows.requires_grad_()
        layers.zero_grad()
        looked_up = rows.index_select(0, positions).view(len(ids), -1)
        found = layers(torch.cat([looked_up, numbers], dim=1))
        loss = torch.nn.functional.binary_cross_entropy_with_logits(found, click)
        loss.backward()
        assert rows.grad is not None
        pushed = [
            rpc.rpc_async(name, push, (places, rows.grad[each]))
            for name, places, each in zip(names, at, own, strict=True)
        ]
        for name, part in zip(names, parts, strict=True):
            pushed.append(rpc.rpc_async(name, push_dense, ([each.grad for each in part],)))
        for answer in pushed:
            answer.wait()
        return float(loss.detach())

    return step


def _copy(answers: list[Any], parts: list[list[torch.Tensor]]) -> None:
    with torch.no_grad():
        for answer, part in zip(answers, parts, strict=True):
            for parameter, values in zip(part, answer.wait(), strict=True):
                parameter.copy_(values)


def _balanced(parameters: list[Any], servers: int) -> list[list[Any]]:
    """The parameters of each server, the largest first to the one with the fewest numbers."""
    parts: list[list[Any]] = [[] for _ in range(servers)]
    for each in sorted(parameters, key=lambda parameter: -parameter.numel()):
        min(parts, key=lambda part: sum(p.numel() for p in part)).append(each)
    return parts


def _join(name: str, rank: int, size: int, at: str, carrier: str) -> None:
    """Meet the others, who talk over TCP, or by shared memory: what one host uses by itself."""
    os.environ.setdefault("TP_SOCKET_IFNAME", "lo")
    options = rpc.TensorPipeRpcBackendOptions(
        num_worker_threads=THREADS,
        rpc_timeout=TIMEOUT_S,
        init_method=f"tcp://{at}",
        _transports=["uv"] if carrier == "tcp" else None,
        _channels=["basic"] if carrier == "tcp" else None,
    )
    rpc.init_rpc(name, rank=rank, world_size=size, rpc_backend_options=options)
