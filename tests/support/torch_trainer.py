"""One trainer of a PyTorch job: DDP over gloo for the dense part, tables on pservers.

    python torch_trainer.py ENDPOINTS OPTIMIZER OUTPUT BATCHES [MODE]

RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are those of torchrun. Trains its share of each batch
in `BATCHES`, an array (steps, trainers, n, 5) of ids; rank 0 writes the parameters, and every rank
its dense ones.
"""

from __future__ import annotations

import os
import sys

import numpy as np
import torch
import torch.distributed as dist

import psrt.torch as pt

WIDTH, HEIGHT, SKIPPED = 8, 50, 3
OPTIMIZERS = {
    "sgd": pt.optim.SGD(0.1),
    "adagrad": pt.optim.Adagrad(0.1),
    "adam": pt.optim.Adam(0.01),
    "row_wise_adagrad": pt.optim.RowWiseAdagrad(0.1),
}


def main(endpoints: str, optimizer: str, output: str, batches: str, mode: str = "sync") -> None:
    torch.set_num_threads(1)
    torch.manual_seed(5)
    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo")
    with pt.connect(endpoints, mode, seed=3, timeout_s=60.0) as session:
        bags = torch.nn.ModuleDict(
            {
                name: pt.EmbeddingBag(WIDTH, name, optimizer=each)
                for name, each in OPTIMIZERS.items()
                if optimizer in (name, "all")
            }
        )
        dense = torch.nn.Linear(WIDTH, 1)
        ddp = torch.nn.parallel.DistributedDataParallel(dense)
        first = {n: session.pull({n: np.arange(HEIGHT)})[n].copy() for n in bags}
        first["dense"] = dense.weight.detach().numpy().copy()
        first["bias"] = dense.bias.detach().numpy().copy()
        step_dense = torch.optim.SGD(ddp.parameters(), 0.1)
        tables = pt.TableOptimizer(bags)
        given = torch.from_numpy(np.load(batches))
        if rank == 0:  # with rows ahead, and the other one without
            given = pt.Prefetch(given, bags, ids=lambda shares: dict.fromkeys(bags, shares[rank]))
        for number, shares in enumerate(given):
            loss = ddp(sum(bag(shares[rank]) for bag in bags.values())).sigmoid().mean() * 10
            loss.backward()
            if number == SKIPPED:  # no step on any rank: nothing changes, and nobody waits
                step_dense.zero_grad()
                tables.zero_grad()
                continue
            for each in (step_dense, tables):
                each.step()
                each.zero_grad()
        for _ in range(2 * rank):  # uneven data: rank 1 goes on alone
            loss = sum(bag(shares[rank]) for bag in bags.values()).sum() * 0.0
            loss.backward()
            tables.param_groups[0]["lr"] = 0.0
            tables.zero_grad()
        np.save(f"{output}.{rank}.npy", dense.weight.detach().numpy())
        if rank == 0:
            last = {n: session.pull({n: np.arange(HEIGHT)})[n] for n in bags}
            last["dense"] = dense.weight.detach().numpy()
            given = {f"first.{n}": v for n, v in first.items()}
            np.savez(output, **given, **{f"last.{n}": v for n, v in last.items()})
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
