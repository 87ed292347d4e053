"""Random histories of pushes, drops, freezes and deltas: each chain restores what was frozen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.support.frozen import SPARSE, apply, pushes_of, state_of, table_of

STEPS = 120
KINDS = ["adagrad", "of float16", "adam_of_all_rows", "counted", "crowded", "with a life"]
KINDS += ["growing", "growing, all rows"]


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psrt.pserver.frozen.frozen_rows.PAGE_BYTES", 4_000)
    monkeypatch.setattr("psrt.pserver.frozen.frozen_records.SLICE_BYTES", 1_500)


class History:
    """A table that changes at random, at most one freeze of it, and the chain of confirmed ones."""

    def __init__(self, kind: str, seed: int) -> None:
        self.spec, self.rng = SPARSE[kind], np.random.default_rng(seed)
        self.table = table_of(self.spec)
        self.table.track_changes()
        self.pushes = pushes_of(seed, STEPS + 1, batch=48, known=200)
        self.frozen: Any = None
        self.walk: Iterator[Any] = iter(())
        self.pages: list[Any] = []
        self.expected: Any = None
        self.chain: list[Any] = []
        self.checked = 0

    def step(self) -> None:
        match int(self.rng.integers(10)):
            case 0:
                self.drop()
            case 1 | 2 if self.frozen is None:
                self.freeze()
            case 3 | 4 | 5 | 6 if self.frozen is not None:
                self.take_page()
            case 7 if self.frozen is not None and self.rng.random() < 0.2:
                self.abandon()
            case _:
                apply(self.table, [self.pushes.pop()])

    def drop(self) -> None:
        """Drop the rows of some ids, and change words of others in place."""
        rest, at = int(self.rng.integers(5)), self.table.layout.state_at - 1

        def decide(rows: np.ndarray) -> np.ndarray:
            found = rows.view(np.int64)[:, 1] % 5
            rows[found == (rest + 1) % 5, at] = 0.25
            return (found == rest).astype(np.uint8)

        self.table.sweep(0, int(self.rng.integers(1, 80)), decide)

    def freeze(self) -> None:
        is_delta = bool(self.chain) and self.rng.random() < 0.8
        self.expected = state_of(self.table)
        self.frozen = self.table.freeze(is_delta)
        self.walk, self.pages = self.frozen.pages(), []

    def take_page(self) -> None:
        page = next(self.walk, None)
        if page is not None:
            self.pages.append(page)
        else:
            self.confirm()

    def confirm(self) -> None:
        """End the freeze, and restore the chain."""
        if self.rng.random() < 0.8:  # else its pages are lost
            self.frozen.confirm()
            is_delta = self.frozen.meta["kind"] == "delta"
            self.chain = (self.chain if is_delta else []) + [(self.frozen.meta, self.pages)]
            restored = table_of(self.spec, stripes=int(self.rng.integers(1, 5)))
            restored.restore(self.chain)
            assert state_of(restored) == self.expected
            self.checked += 1
        self.abandon()

    def abandon(self) -> None:
        if self.rng.random() < 0.5:
            self.frozen.close()
        self.frozen, self.walk = None, iter(())


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", KINDS)
def test_every_chain_of_freezes_restores_the_state_at_its_end(kind: str, seed: int) -> None:
    history = History(kind, seed)
    for _ in range(STEPS):
        history.step()
    if history.frozen is None:
        history.freeze()
    while history.frozen is not None:
        history.take_page()

    assert history.checked
