"""`fluid.contrib.reader`: the mini-batches of one trainer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from psrt.config.load import environment
from psrt.core.errors import ConfigError
from psrt.data.python import Reader, batch


def distributed_batch_reader(batch_reader: Reader[Any]) -> Reader[Any]:
    """Return a reader of every n-th mini-batch, as PADDLE_TRAINER_ID and PADDLE_TRAINERS_NUM deal.

    Those of the end that are too few for all trainers are dropped, so that all have as many.
    """
    known = environment()
    trainers = int(known.get("PADDLE_TRAINERS_NUM", 1))
    trainer = int(known.get("PADDLE_TRAINER_ID", 0))
    if trainer >= trainers:
        raise ConfigError(f"PADDLE_TRAINER_ID is {trainer}, but PADDLE_TRAINERS_NUM is {trainers}.")

    def mine() -> Iterator[Any]:
        for dealt in batch(batch_reader, trainers, drop_last=True)():
            yield dealt[trainer]

    return mine


__all__ = ["distributed_batch_reader"]
