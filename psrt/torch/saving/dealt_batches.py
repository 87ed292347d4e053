"""Batches of a map-style data set for any number of ranks, each example once an epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from psrt.core.errors import ConfigError
from psrt.core.types import I64
from psrt.torch.session import TableSession, current

Deals: TypeAlias = list[list[int]]
"""The indices that each rank has trained of its share, for each time that an epoch was dealt."""


class DealtBatches:
    """A `batch_sampler` of DataLoader: this rank's lists of `batch_size` of the `size` indices.

    Every epoch has an order of its own, by `seed`; rank r gets each T-th index from r on. After a
    restart with another number of ranks `Resumable` has the unread rest dealt anew. `deals` are by
    epoch the numbers of indices that each former rank has trained, one list for each deal: of later
    epochs, too, if some ranks were ahead.
    """

    def __init__(
        self,
        size: int,
        batch_size: int,
        *,
        seed: int = 0,
        shuffle: bool = True,
        session: TableSession | None = None,
    ) -> None:
        if size < 1 or batch_size < 1:
            raise ConfigError(
                f"{size} indices in batches of {batch_size} cannot be dealt.",
                hint="Both are at least 1.",
            )
        backend = (session or current()).backend
        self._rank, self._ranks = backend.trainer_id, backend.trainers
        self._size, self.batch_size, self._seed, self._shuffle = size, batch_size, seed, shuffle
        self.epoch = 0
        self.deals: dict[int, Deals] = {}

    def __iter__(self) -> Iterator[list[int]]:
        mine = self._mine()
        for first in range(0, len(mine), self.batch_size):
            yield mine[first : first + self.batch_size].tolist()

    def __len__(self) -> int:
        return -(-len(self._mine()) // self.batch_size)

    def set_epoch(self, epoch: int) -> None:
        """Begin an epoch; the running one goes on."""
        self.epoch = epoch

    def go_on(self, epoch: int, deals: Mapping[int, Deals]) -> None:
        """Go on in an epoch with what was dealt before in it, and in later ones."""
        self.epoch, self.deals = epoch, dict(deals)

    def _mine(self) -> I64:
        rest = self._order()
        for trained in self.deals.get(self.epoch, ()):
            rest = unread(rest, trained)
        return rest[self._rank :: self._ranks]

    def _order(self) -> I64:
        if not self._shuffle:
            return np.arange(self._size)
        return np.random.default_rng([self._seed, self.epoch]).permutation(self._size)


def unread(order: I64, trained: Sequence[int]) -> I64:
    """The rest of `order`, which was dealt among ranks: each has `trained` so many of its share."""
    at = np.arange(len(order))
    ranks = len(trained)
    left: I64 = order[at // ranks >= np.array(trained)[at % ranks]]
    return left
