"""A rank of a PyTorch script, as any launcher starts it: `python torch_rank.py DIRECTORY`.

Rank and pservers come from the environment. Trains three steps in Sync and writes the rows that it
sees at the end to `DIRECTORY/rank-N.json`. With MASTER_ADDR, which torchrun and `psrt launch` set,
ranks also meet over gloo.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist

import psrt.torch as pt
from psrt.torch.connecting import rank_of

WIDTH, STEPS = 4, 3


def main(directory: str) -> None:
    torch.set_num_threads(1)
    met = 0
    if "MASTER_ADDR" in os.environ:
        dist.init_process_group("gloo")
        count = torch.ones(1)
        dist.all_reduce(count)
        met = int(count)
        dist.destroy_process_group()
    rank, size = rank_of(os.environ) or (0, 0)
    with pt.connect(timeout_s=150.0):
        items = pt.Embedding(WIDTH, "items", optimizer=pt.optim.SGD(0.1))
        tables = pt.TableOptimizer(items)
        for _ in range(STEPS):
            items(torch.tensor([rank, 7])).sum().backward()
            tables.step()
            tables.zero_grad()
        with torch.no_grad():
            rows = items(torch.tensor([0, 1, 7])).tolist()
    facts = {"rank": rank, "trainers": size, "met": met, "rows": rows}
    Path(directory, f"rank-{rank}.json").write_text(json.dumps(facts))


if __name__ == "__main__":
    main(*sys.argv[1:])
