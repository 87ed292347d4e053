"""Two towers for retrieval: users and films meet in a dot product.

    python examples/recommender/make_data.py examples/recommender/data
    python examples/torch/two_towers.py 'examples/recommender/data/train-*' \
        'examples/recommender/data/test-*'

A film that a user rated 4 or better shall be nearer than the other films of its batch (sampled
softmax). The test ranks all films for each user who liked one: recall at 20 is how often that film
is among the first 20.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from common import arguments, batches, multislot, numbers, session

import psrt
import psrt.torch as pt

WIDTH, LIKED, FIRST, SHARPNESS = 16, 4.0, 20, 8.0
USER, FILM = ["user", "gender", "age", "job"], ["film", "genres"]


def collate(lines: list[str]) -> tuple[pt.Jagged, torch.Tensor]:
    """All features of liked films and their users, and the films (n,)."""
    rows = [dict(zip([*USER, *FILM, "rating"], multislot(line), strict=True)) for line in lines]
    liked = [row for row in rows if float(row["rating"][0]) >= LIKED]
    ids = [({name: list(map(int, row[name])) for name in USER + FILM},) for row in liked]
    return pt.collate(ids)[0], numbers([row["film"] for row in liked])


class Tower(torch.nn.Module):
    """Directions (n, WIDTH) of users or films, out of the tables of their features."""

    def __init__(self, features: list[str]) -> None:
        super().__init__()
        optimizer = pt.optim.Adagrad(lr=0.1)
        init = psrt.initializer.Normal(0.0, 0.1)
        tables = [
            pt.EmbeddingBagConfig(name, WIDTH, optimizer=optimizer, init=init, pooling="mean")
            for name in features
        ]
        self.tables = pt.EmbeddingBagCollection(tables)
        self.dense = torch.nn.Sequential(
            torch.nn.Linear(WIDTH * len(features), 32), torch.nn.ReLU(), torch.nn.Linear(32, WIDTH)
        )

    def forward(self, features: pt.Jagged) -> torch.Tensor:
        rows = torch.cat(list(self.tables(features).values()), dim=1)
        return torch.nn.functional.normalize(self.dense(rows), dim=1)


def loss_of(users: torch.Tensor, films: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """Cross entropy of each user's film against the other films of the batch."""
    logits = users @ films.T * SHARPNESS
    twice = (ids[:, None] == ids) & ~torch.eye(len(ids), dtype=torch.bool)
    return torch.nn.functional.cross_entropy(
        logits.masked_fill(twice, -1e9), torch.arange(len(ids))
    )


def main(given: Sequence[str] | None = None) -> float:
    """Train, and return the recall at 20 of the test files."""
    args = arguments(given, __doc__, steps=600)
    with session(args):
        towers = torch.nn.ModuleDict({"user": Tower(USER), "film": Tower(FILM)})
        dense, tables = torch.optim.Adam(towers.parameters(), lr=3e-3), pt.TableOptimizer(towers)
        loader = batches(args.train, args, collate)
        for step, (features, ids) in enumerate(pt.Prefetch(loader, towers), 1):
            loss = loss_of(towers["user"](features), towers["film"](features), ids)
            loss.backward()
            for optimizer in (dense, tables):
                optimizer.step()
                optimizer.zero_grad()
            if step % 100 == 0:
                print(f"step {step}  loss {loss.item():.4f}")
        return test(towers.eval(), batches(args.test, args, collate, test=True))


@torch.no_grad()
def test(towers: torch.nn.ModuleDict, loader: Sequence[tuple[pt.Jagged, torch.Tensor]]) -> float:
    found = [(towers["user"](f), towers["film"](f), ids) for f, ids in loader]
    users, films, ids = map(torch.cat, zip(*found, strict=True))
    catalog = {int(film): at for film, at in zip(ids, films, strict=True)}
    ranked = (users @ torch.stack(list(catalog.values())).T).topk(FIRST, dim=1).indices
    hits = torch.tensor(list(catalog))[ranked] == ids[:, None]
    recall = hits.any(dim=1).float().mean().item()
    print(f"recall at {FIRST} of {len(catalog)} films {recall:.3f}")
    return recall


if __name__ == "__main__":
    main()
