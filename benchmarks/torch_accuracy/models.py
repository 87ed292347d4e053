"""Two networks over any bag of embeddings: a CTR-DNN, and DLRM (Naumov et al. 2019)."""

from __future__ import annotations

import itertools

import torch

from benchmarks.torch_accuracy.clicks import CATEGORIES, INTEGERS

WIDTH = 16
HIDDEN = (400, 400, 400)


def mlp(*widths: int) -> torch.nn.Sequential:
    """Linear layers, each but the last with a ReLU behind it."""
    made: list[torch.nn.Module] = []
    for before, after in itertools.pairwise(widths):
        made += [torch.nn.Linear(before, after), torch.nn.ReLU()]
    return torch.nn.Sequential(*made[:-1])


class CtrDnn(torch.nn.Module):
    """Layers over all rows and numbers side by side."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = mlp(CATEGORIES * WIDTH + INTEGERS, *HIDDEN, 1)

    def forward(self, rows: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.layers(torch.cat([rows.flatten(1), numbers], dim=1))
        return found


class Dlrm(torch.nn.Module):
    """Layers over the numbers, products of all pairs of vectors, and layers over these."""

    def __init__(self) -> None:
        super().__init__()
        vectors = CATEGORIES + 1
        self.bottom = mlp(INTEGERS, 64, WIDTH)
        self.top = mlp(WIDTH + vectors * (vectors - 1) // 2, 256, 64, 1)
        self.pairs = torch.triu_indices(vectors, vectors, offset=1)

    def forward(self, rows: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        below = self.bottom(numbers).relu()
        vectors = torch.cat([below[:, None], rows], dim=1)
        products = (vectors @ vectors.mT)[:, self.pairs[0], self.pairs[1]]
        found: torch.Tensor = self.top(torch.cat([below, products], dim=1))
        return found


MODELS = {"ctr_dnn": CtrDnn, "dlrm": Dlrm}


class Ranker(torch.nn.Module):
    """`table` (ids (n, 1) → rows (n, 16)) and the layers over its rows."""

    def __init__(self, table: torch.nn.Module, layers: torch.nn.Module) -> None:
        super().__init__()
        self.table, self.layers = table, layers

    def forward(self, ids: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        rows = self.table(ids.reshape(-1, 1)).view(*ids.shape, WIDTH)
        found: torch.Tensor = self.layers(rows, numbers)
        return found
