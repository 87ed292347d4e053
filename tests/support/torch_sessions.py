"""PyTorch trainers as threads of a test, over pservers in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

import psrt.torch as pt
from psrt.core.specs import CommunicationMode
from psrt.torch import TableSession

T = TypeVar("T")

TIMEOUT_S = 60.0


class Served(Protocol):
    """A pserver, in this process or in one of its own."""

    @property
    def endpoint(self) -> str: ...


def trained(
    pservers: Sequence[Served],
    mode: str | CommunicationMode,
    train: Callable[[TableSession, int], T],
    trainers: int = 2,
    **further: Any,
) -> list[T]:
    """Results of `train(session, rank)` on `trainers` threads, each in a session of its own.

    `further` arguments are those of `pt.connect`. Raises the first error.
    """
    endpoints = [each.endpoint for each in pservers]

    def run(rank: int) -> T:
        numbers = {"trainer_id": rank, "trainers": trainers, "timeout_s": TIMEOUT_S}
        with pt.connect(endpoints, mode, seed=3, **numbers, **further) as session:
            return train(session, rank)

    with ThreadPoolExecutor(trainers) as threads:
        return list(threads.map(run, range(trainers)))
