"""Positions of ranks in different epochs, which other numbers of ranks go on from."""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="psrt.torch needs torch")

import psrt.torch as pt  # noqa: E402

EXAMPLES, BATCH, EPOCHS = 22, 2, 4


class Rank:
    """The loader of one rank, without tables; it trains batches up to the end of the last epoch."""

    def __init__(self, rank: int, ranks: int, states: Sequence[Any] = ()) -> None:
        self._steps: list[Callable[[], None]] = []
        backend = SimpleNamespace(trainer_id=rank, trainers=ranks)
        session: Any = SimpleNamespace(
            backend=backend, on_step=self._steps.append, counts_batches=lambda: None
        )
        batches = pt.DealtBatches(EXAMPLES, BATCH, seed=3, session=session)
        data = torch.utils.data.DataLoader(range(EXAMPLES), batch_sampler=batches)
        self.loader = pt.Resumable(data, session=session)
        if states:
            self.loader.load_state_dicts(states)

    def train(self, steps: int = 1 << 30) -> list[tuple[int, int]]:
        """The epoch and number of each example of up to `steps` batches."""
        seen: list[tuple[int, int]] = []
        while self.loader.epoch < EPOCHS:
            epoch = self.loader.epoch
            for batch in self.loader:
                if not steps:
                    return seen
                seen += [(epoch, int(each)) for each in batch]
                for stepped in self._steps:
                    stepped()
                steps -= 1
        return seen


def resized(given: Sequence[Sequence[int]]) -> collections.Counter[tuple[int, int]]:
    """Counts of each example in each epoch. Each of `given` is a job with as many
    ranks, which train so many batches until the job is saved; the last one trains to the end."""
    seen, states = collections.Counter[tuple[int, int]](), list[Any]()
    for steps in given:
        ranks = [Rank(number, len(steps), states) for number in range(len(steps))]
        for rank, most in zip(ranks, steps, strict=True):
            seen.update(rank.train(most))
        states = [rank.loader.state_dict() for rank in ranks]
    return seen


END = 1 << 30


@pytest.mark.parametrize(
    "given",
    [
        [[2, 8], [END] * 3],
        [[2, 8], [END] * 2],
        [[1, 14], [END]],  # two epochs apart
        [[6, 3], [1, 7, 2], [END] * 2],  # resized twice, and apart both times
        [[0, 8], [2, 0, 9], [1], [END] * 2],
        [[6, 6], [END] * 3],  # both at the end of an epoch
    ],
    ids=str,
)
def test_ranks_that_were_epochs_apart_train_each_example_once_in_each_epoch(given: Any) -> None:
    expected = {(epoch, n): 1 for epoch in range(EPOCHS) for n in range(EXAMPLES)}

    assert resized(given) == expected
