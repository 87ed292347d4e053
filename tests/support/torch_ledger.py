"""A PyTorch training whose parameters count examples and steps, and a rank that runs it.

    python torch_ledger.py DIRECTORY SAVED_AT KILLED_AT [MODE]

As a script it trains one epoch over the pservers of its environment. All ranks save a cut to
`DIRECTORY/cuts` behind step SAVED_AT, and go on from the cut that pservers began with; the last
rank kills itself behind step KILLED_AT; 0 = never. Rank 0 waits behind step N until somebody has
written to the FIFO `DIRECTORY/gate-N`, if there is one. Each writes `DIRECTORY/rank-N.npz`.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

import psrt.torch as pt
from psrt.core.specs import Constant

EXAMPLES, BATCH, WIDTH, TRAINERS = 96, 4, 3, 2
STEPS = EXAMPLES // BATCH // TRAINERS
FIRST = 0.5
"""The first value of `count` at rank 0, which counts."""

LONGEST_S = 120.0
EVERY_ID = np.arange(EXAMPLES)

OnStep = Callable[[pt.Checkpointer, int], None]


def train(
    session: pt.TableSession,
    rank: int,
    cuts: str = "",
    on_step: OnStep = lambda saved, step: None,
    ahead: bool = False,
) -> dict[str, np.ndarray]:
    """The parameters after an epoch. Of each row the first column counts its trained examples;
    `count` counts steps above its first value; all others have noise, by which orders show.

    `on_step` is called with the number of each step of this process. With `ahead` rows are read
    before their step.
    """
    one, made = pt.optim.SGD(1.0), torch.Generator().manual_seed(rank)
    count, noise = torch.nn.Linear(1, 1, bias=False), torch.nn.Linear(WIDTH, 2)
    count.weight.data.fill_(FIRST - rank)
    torch.nn.init.normal_(noise.weight, generator=made)
    rows = pt.EmbeddingBag(WIDTH, "rows", "sum", optimizer=one, init=Constant(0.0))
    counted = pt.DenseOnServer(count, one, name="count")
    noisy = pt.DenseOnServer(noise, pt.optim.Adam(0.01), name="noise")
    model = torch.nn.ModuleList([rows, counted, noisy])
    tables = pt.TableOptimizer(model, reduce="sum")
    batches = pt.DealtBatches(EXAMPLES, BATCH, seed=1)
    given = torch.utils.data.DataLoader(EVERY_ID, batch_sampler=batches)
    prefetched = pt.Prefetch(given, rows, ids=lambda ids: {"rows": ids}) if ahead else given
    loader = pt.Resumable(prefetched)
    saved = pt.Checkpointer(session, model=model, tables=tables, loader=loader)
    if cuts:
        saved.load(cuts)
    for step, ids in enumerate(loader, 1):
        found = rows(ids[:, None])
        loss = (noisy(found) * torch.randn(2, generator=made)).sum() - found[:, 0].sum()
        (loss - counted(torch.ones(1, 1)).sum()).backward()
        for leaf in tables.leaves():
            leaf.grad[:, 0] = -1.0  # exactly one for each example
        tables.step()
        tables.zero_grad()
        on_step(saved, step)
    session.flush()
    session.backend.tell("trained", "", LONGEST_S)
    session.flush()
    last = session.pull({"rows": EVERY_ID})["rows"].copy()
    return {"rows": last, "noise": values(noise), "count": values(count)}


def values(module: torch.nn.Linear) -> np.ndarray:
    return module.weight.detach().numpy().copy()


def check_counts(found: dict[str, np.ndarray]) -> None:
    """Assert that each example and each step was counted once."""
    np.testing.assert_array_equal(found["rows"][:, 0], np.ones(EXAMPLES))
    assert found["count"].item() == FIRST + TRAINERS * STEPS


def main(directory: str, saved_at: str, killed_at: str, mode: str = "sync") -> None:
    torch.set_num_threads(1)
    rank, cuts = int(os.environ["RANK"]), f"{directory}/cuts"

    def on_step(saved: pt.Checkpointer, step: int) -> None:
        if step == int(saved_at):
            saved.save(cuts)
        gate = Path(directory, f"gate-{step}")
        if rank == 0 and gate.exists():
            gate.read_text()
        if step == int(killed_at) and rank == TRAINERS - 1:
            os.kill(os.getpid(), signal.SIGKILL)

    with pt.connect(mode=mode, timeout_s=LONGEST_S) as session:
        found = train(session, rank, cuts, on_step)
    np.savez(Path(directory, f"rank-{rank}.npz"), **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
