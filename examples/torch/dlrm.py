"""DLRM (Naumov et al. 2019) on rows in Criteo's format.

    python examples/torch/make_criteo.py examples/torch/data
    python examples/torch/dlrm.py 'examples/torch/data/train-*' 'examples/torch/data/test-*'

With Criteo's own files put their paths in place of these, also of `train.tsv.gz`. The numbers pass
a small network; its result and the rows of 26 tables meet in dot products of each pair.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from common import arguments, auc, batches, session

import psrt
import psrt.torch as pt

NUMBERS, FIELDS, WIDTH = 13, [f"C{number}" for number in range(1, 27)], 16

Batch = tuple[torch.Tensor, pt.Jagged, torch.Tensor]


def collate(lines: list[str]) -> Batch:
    """Numbers (n, 13), one id or none of each field, and labels (n,)."""
    rows = [line.rstrip("\n").split("\t") for line in lines]
    counts = [[max(0.0, float(cell or 0)) for cell in row[1 : NUMBERS + 1]] for row in rows]
    words = [row[NUMBERS + 1 + field] for field in range(len(FIELDS)) for row in rows]
    ids = torch.tensor([int(word, 16) for word in words if word], dtype=torch.int64)
    jagged = pt.Jagged(FIELDS, ids, torch.tensor([int(bool(word)) for word in words]))
    return torch.tensor(counts).log1p(), jagged, torch.tensor([float(row[0]) for row in rows])


class Dlrm(torch.nn.Module):
    """Logits (n,) of clicks."""

    def __init__(self) -> None:
        super().__init__()
        how = {
            "optimizer": pt.optim.RowWiseAdagrad(lr=0.05),
            "init": psrt.initializer.Uniform(-0.1, 0.1),
        }
        tables = [pt.EmbeddingBagConfig(name, WIDTH, **how) for name in FIELDS]
        self.tables = pt.EmbeddingBagCollection(tables)
        self.bottom = layers(NUMBERS, 64, WIDTH)
        pairs = len(FIELDS) * (len(FIELDS) + 1) // 2
        self.top = layers(WIDTH + pairs, 64, 1)
        self.pairs = torch.tril_indices(len(FIELDS) + 1, len(FIELDS) + 1, -1)

    def forward(self, numbers: torch.Tensor, words: pt.Jagged) -> torch.Tensor:
        rows = self.tables(words)
        bottom = self.bottom(numbers)
        all_ = torch.stack([bottom, *(rows[name] for name in FIELDS)], dim=1)
        dots = torch.bmm(all_, all_.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat([bottom, dots], dim=1)).squeeze(1)


def layers(given: int, hidden: int, out: int) -> torch.nn.Sequential:
    return torch.nn.Sequential(
        torch.nn.Linear(given, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, out)
    )


def main(given: Sequence[str] | None = None) -> float:
    """Train, and return the AUC of the test files."""
    args = arguments(given, __doc__, steps=300)
    with session(args):
        model = Dlrm()
        dense = torch.optim.Adam(model.parameters(), lr=2e-3)
        tables = pt.TableOptimizer(model)
        loader = batches(args.train, args, collate)
        for step, (numbers, words, labels) in enumerate(pt.Prefetch(loader, model), 1):
            logits = model(numbers, words)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels)
            loss.backward()
            for optimizer in (dense, tables):
                optimizer.step()
                optimizer.zero_grad()
            if step % 100 == 0:
                print(f"step {step}  loss {loss.item():.4f}")
        return test(model.eval(), batches(args.test, args, collate, test=True))


@torch.no_grad()
def test(model: Dlrm, loader: Sequence[Batch]) -> float:
    found = [(model(numbers, words), labels) for numbers, words, labels in loader]
    result = auc(*map(torch.cat, zip(*found, strict=True)))
    print(f"test AUC {result:.4f}")
    return result


if __name__ == "__main__":
    main()
