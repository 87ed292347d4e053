"""Word vectors by skip-gram with negative sampling (Mikolov et al. 2013).

    python examples/word2vec/make_data.py examples/word2vec/data
    python examples/torch/word2vec.py 'examples/word2vec/data/train-*' \
        'examples/word2vec/data/test-*'

With a text of your own: `make_data.py examples/word2vec/data TEXT`, one sentence a line. Negative
words are drawn from those of the batch, which have the frequencies of the text.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from common import arguments, batches, multislot, numbers, session

import psrt
import psrt.torch as pt

WIDTH, NEGATIVES = 32, 5


def collate(lines: list[str]) -> dict[str, torch.Tensor]:
    """The word in the middle (n,), and one near it with `NEGATIVES` others (n, 1 + NEGATIVES)."""
    rows = [multislot(line) for line in lines]
    near = numbers([row[1] for row in rows])
    others = near[torch.randint(len(near), (len(near), NEGATIVES))]
    return {
        "words": numbers([row[0] for row in rows]),
        "contexts": torch.cat([near[:, None], others], dim=1),
    }


class SkipGram(torch.nn.Module):
    """The loss of a batch: the near word against the others."""

    def __init__(self) -> None:
        super().__init__()
        small, zero = (
            psrt.initializer.Uniform(-0.5 / WIDTH, 0.5 / WIDTH),
            psrt.initializer.Constant(0.0),
        )
        optimizer = pt.optim.Adagrad(lr=0.3)
        self.words = pt.Embedding(WIDTH, "words", optimizer=optimizer, init=small)
        self.contexts = pt.Embedding(WIDTH, "contexts", optimizer=optimizer, init=zero)

    def forward(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        words, contexts = self.words(batch["words"]), self.contexts(batch["contexts"])
        scores = torch.einsum("nd,nkd->nk", words, contexts)
        signs = torch.ones(1 + NEGATIVES)
        signs[1:] = -1
        return -torch.nn.functional.logsigmoid(scores * signs).sum(dim=1).mean()


def main(given: Sequence[str] | None = None) -> float:
    """Train, and return the loss of the test files."""
    args = arguments(given, __doc__, steps=300)
    with session(args):
        model = SkipGram()
        tables = pt.TableOptimizer(model)
        loader = batches(args.train, args, collate)
        for step, batch in enumerate(pt.Prefetch(loader, model), 1):
            loss = model(batch)
            loss.backward()
            tables.step()
            if step % 100 == 0:
                print(f"step {step}  loss {loss.item():.4f}")
        with torch.no_grad():
            losses = [model(each) for each in batches(args.test, args, collate, test=True)]
        result = torch.stack(losses).mean().item()
        print(f"test loss {result:.4f}")
        return result


if __name__ == "__main__":
    main()
