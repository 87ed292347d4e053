"""Deep Interest Network (Zhou et al. 2018): the history is weighed by what is offered.

    python examples/din/make_data.py examples/din/data
    python examples/torch/din.py 'examples/din/data/train-*' 'examples/din/data/test-*'

One table holds the items of the history and the offered one. Histories are padded with the id −1,
whose row is zeros and stays so.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from common import arguments, auc, batches, multislot, numbers, session

import psrt
import psrt.torch as pt

WIDTH, PADDING = 16, -1

Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def collate(lines: list[str]) -> Batch:
    """Histories (n, longest), offered items (n,) and clicks (n,)."""
    clicks, histories, items = zip(*map(multislot, lines), strict=True)
    lists = [torch.tensor(list(map(int, history))) for history in histories]
    padded = torch.nn.utils.rnn.pad_sequence(lists, batch_first=True, padding_value=PADDING)
    return padded, numbers(items), torch.tensor([float(click[0]) for click in clicks])


class Din(torch.nn.Module):
    """Logits (n,) of clicks."""

    def __init__(self) -> None:
        super().__init__()
        optimizer, init = pt.optim.LazyAdam(lr=0.01), psrt.initializer.Normal(0.0, 0.1)
        self.items = pt.Embedding(WIDTH, "items", PADDING, optimizer=optimizer, init=init)
        self.attention = layers(4 * WIDTH, 32)
        self.top = layers(3 * WIDTH, 32)

    def forward(self, history: torch.Tensor, item: torch.Tensor) -> torch.Tensor:
        seen, offered = self.items(history), self.items(item)
        beside = offered[:, None].expand_as(seen)
        pair = torch.cat([seen, beside, seen - beside, seen * beside], dim=2)
        weights = self.attention(pair) * (history != PADDING)[..., None]
        interest = (weights * seen).sum(dim=1)
        return self.top(torch.cat([interest, offered, interest * offered], dim=1)).squeeze(1)


def layers(given: int, hidden: int) -> torch.nn.Sequential:
    return torch.nn.Sequential(
        torch.nn.Linear(given, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, 1)
    )


def main(given: Sequence[str] | None = None) -> float:
    """Train, and return the AUC of the test files."""
    args = arguments(given, __doc__, steps=300)
    with session(args):
        model = Din()
        dense, tables = torch.optim.Adam(model.parameters(), lr=0.005), pt.TableOptimizer(model)
        loader = pt.Prefetch(
            batches(args.train, args, collate), model, ids=lambda batch: {"items": list(batch[:2])}
        )
        for step, (history, item, clicks) in enumerate(loader, 1):
            logits = model(history, item)
            loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, clicks)
            loss.backward()
            for optimizer in (dense, tables):
                optimizer.step()
                optimizer.zero_grad()
            if step % 100 == 0:
                print(f"step {step}  loss {loss.item():.4f}")
        return test(model.eval(), batches(args.test, args, collate, test=True))


@torch.no_grad()
def test(model: Din, loader: Sequence[Batch]) -> float:
    found = [(model(history, item), clicks) for history, item, clicks in loader]
    result = auc(*map(torch.cat, zip(*found, strict=True)))
    print(f"test AUC {result:.4f}")
    return result


if __name__ == "__main__":
    main()
