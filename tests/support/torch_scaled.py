"""One rank of a torch job whose gradients are scaled; tables are in its process.

    python torch_scaled.py sharded|plain

Rank 1 alone has an infinite gradient of its table in step 1. Prints the loss scale after each step
and the number of rows that changed.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler

import psrt.torch as pt

STEPS, HEIGHT = 3, 10


def main(kind: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    scaler = (ShardedGradScaler if kind == "sharded" else torch.amp.GradScaler)("cpu", 1024.0)
    with pt.local() as session:
        words = pt.Embedding(2, "words", optimizer=pt.optim.SGD(0.1))
        tables = pt.TableOptimizer(words)
        for step in range(STEPS):
            before = session.pull({"words": np.arange(HEIGHT)})["words"].copy()
            factor = float("inf") if step == 1 and dist.get_rank() == 1 else 1.0
            scaler.scale(words(torch.arange(4)).sum() * factor).backward()
            scaler.unscale_(tables)
            scaler.step(tables)
            scaler.update()
            tables.zero_grad()
            after = session.pull({"words": np.arange(HEIGHT)})["words"]
            changed = int((before != after).any(axis=1).sum())
            print(json.dumps([scaler.get_scale(), changed]), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
