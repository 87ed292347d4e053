"""Random histories of pushes, drops, freezes and deltas: each chain restores what was frozen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from psrt.pserver.frozen import CUTS
from tests.support.frozen import SPARSE, apply, pushes_of, state_of, table_of

STEPS = 120
KINDS = ["adagrad", "of float16", "adam_of_all_rows", "counted", "crowded", "with a life"]
KINDS += ["growing", "growing, all rows"]


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psrt.pserver.frozen.frozen_rows.PAGE_BYTES", 4_000)
    monkeypatch.setattr("psrt.pserver.frozen.frozen_records.SLICE_BYTES", 1_500)


class Consumer:
    """The freezes that one consumer takes, and the chain of those it has confirmed."""

    def __init__(self, name: str, spec: Any, table: Any, rng: np.random.Generator) -> None:
        self.name, self.spec, self.table, self.rng = name, spec, table, rng
        table.track_changes(name)
        self.frozen: Any = None
        self.walk: Iterator[Any] = iter(())
        self.pages: list[Any] = []
        self.expected: Any = None
        self.chain: list[Any] = []
        self.checked = 0

    def freeze(self) -> None:
        is_delta = bool(self.chain) and self.rng.random() < 0.8
        self.expected = state_of(self.table)
        self.frozen = self.table.freeze(is_delta, self.name)
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
            self.restores(self.chain)
        self.abandon()

    def restores(self, chain: list[Any]) -> None:
        restored = table_of(self.spec, stripes=int(self.rng.integers(1, 5)))
        restored.restore(chain)
        assert state_of(restored) == self.expected
        self.checked += 1

    def abandon(self) -> None:
        if self.rng.random() < 0.5:
            self.frozen.close()
        self.frozen, self.walk = None, iter(())


class History:
    """A table that changes at random, and the freezes that its consumers take of it."""

    def __init__(self, kind: str, seed: int, *consumers: str) -> None:
        self.spec, self.rng = SPARSE[kind], np.random.default_rng(seed)
        self.table = table_of(self.spec)
        self.consumers = [Consumer(name, self.spec, self.table, self.rng) for name in consumers]
        self.pushes = pushes_of(seed, STEPS + 1, batch=48, known=200)

    def step(self) -> None:
        one = self.consumers[int(self.rng.integers(len(self.consumers)))]
        match int(self.rng.integers(10)):
            case 0:
                self.drop()
            case 1 | 2 if one.frozen is None:
                one.freeze()
            case 3 | 4 | 5 | 6 if one.frozen is not None:
                one.take_page()
            case 7 if one.frozen is not None and self.rng.random() < 0.2:
                one.abandon()
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

    def end(self) -> None:
        """Take and finish a last freeze for each consumer."""
        for one in self.consumers:
            if one.frozen is None:
                one.freeze()
            while one.frozen is not None:
                one.take_page()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", KINDS)
def test_every_chain_of_freezes_restores_the_state_at_its_end(kind: str, seed: int) -> None:
    history = History(kind, seed, CUTS)
    for _ in range(STEPS):
        history.step()
    history.end()

    assert history.consumers[0].checked


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", KINDS)
def test_consumers_take_freezes_at_the_same_time_and_no_one_misses_a_change(
    kind: str, seed: int
) -> None:
    history = History(kind, seed, CUTS, "deltas", "backup")
    for _ in range(STEPS):
        history.step()
    history.end()

    assert sum(one.checked for one in history.consumers)


@pytest.mark.parametrize("kind", SPARSE)
def test_deltas_of_another_consumer_continue_a_freeze_that_was_taken_in_between(kind: str) -> None:
    """A part of a cut, and behind it a delta that a pserver writes at its own time."""
    pushes, spec = pushes_of(5, 12), SPARSE[kind]
    table, restored = table_of(spec), table_of(spec, 2)
    for name in CUTS, "deltas", "backup":
        table.track_changes(name)
    apply(table, pushes[:3])
    with table.freeze(consumer="deltas") as early:
        early.confirm()
    backup = table.freeze(consumer="backup")
    apply(table, pushes[3:6])
    part = table.freeze(consumer=CUTS)
    apply(table, pushes[6:9])
    delta = table.freeze(is_delta=True, consumer="deltas")
    sources = [(part.meta, list(part.pages())), (delta.meta, list(delta.pages()))]
    expected = state_of(table)
    apply(table, pushes[9:])

    restored.restore(sources)

    assert state_of(restored) == expected
    assert list(backup.pages())
