"""Freezes while other threads push: each update is in a freeze as a whole or not at all."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from psrt.core import specs
from psrt.pserver.frozen import UpdateGate
from psrt.pserver.tables import sparse_table
from psrt.pserver.tables.helper_threads import HelperThreads, Task
from psrt.pserver.tables.sparse_table import SparseTable
from tests.support.frozen import BASE, DENSE, SIZE, block_of, ids_of_pages, read, table_of

IDS = np.arange(3_000, dtype=np.int64) * 977
ONES = np.full((len(IDS), 5), -1.0, np.float32)
CLICKS = np.ones((len(IDS), 2), np.float32)
WAIT_S = 30.0
COUNTING = replace(BASE, initializer=specs.Constant(0.0))
"""By SGD at rate 1 every push adds 1 to each weight of each row."""

TABLES = {
    "plain": COUNTING,
    "of bfloat16": replace(COUNTING, storage="bfloat16"),
    "growing": replace(COUNTING, growth=specs.Growth(2, 0.1)),
}


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psrt.pserver.frozen.frozen_rows.PAGE_BYTES", 20_000)
    monkeypatch.setattr("psrt.pserver.frozen.frozen_records.SLICE_BYTES", 5_000)


class Pushers:
    """Threads that push until the end; `pushed` is released after each push."""

    def __init__(self, push: Callable[[], None], count: int = 3, most: int = 1_000_000) -> None:
        self.pushed = threading.Semaphore(0)
        self._push, self._left = push, most
        self._counting, self._stopped = threading.Lock(), threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(count)]

    def __enter__(self) -> Pushers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join(WAIT_S)
        assert not any(thread.is_alive() for thread in self._threads)

    def await_one(self) -> None:
        assert self.pushed.acquire(timeout=WAIT_S)

    def _run(self) -> None:
        while not self._stopped.is_set():
            with self._counting:
                self._left -= 1
            if self._left < 0:
                return
            self._push()
            self.pushed.release()


@pytest.mark.parametrize("spec", TABLES.values(), ids=TABLES)
def test_all_rows_of_a_freeze_have_the_updates_of_its_version(spec: specs.SparseTableSpec) -> None:
    table = table_of(spec)
    most = 200  # whole numbers up to 256 are exact in bfloat16

    def push() -> None:
        table.apply(table.route(IDS), ONES, 1.0, CLICKS)

    push()
    with Pushers(push, most=most) as pushers:
        for _ in range(4):
            pushers.await_one()
            restored, pages = table_of(spec), []
            with table.freeze() as frozen:
                for number, page in enumerate(frozen.pages()):
                    pages.append(page)
                    if number < 3:
                        pushers.await_one()
            restored.restore([(frozen.meta, pages)])

            expected = np.full((len(IDS), 5), frozen.meta["version"], np.float32)
            assert read(restored, IDS) == expected.tobytes()
            assert sorted(ids_of_pages(pages)) == IDS.tolist()


def test_deltas_taken_while_others_push_add_up_to_the_table() -> None:
    table, restored, sources = table_of(COUNTING), table_of(COUNTING), []
    rng, choosing = np.random.default_rng(5), threading.Lock()

    def push() -> None:
        with choosing:
            ids = rng.choice(IDS, 100, replace=False)
        table.apply(table.route(ids), ONES[:100], 1.0)

    table.track_changes()
    with Pushers(push) as pushers:
        for number in range(6):
            pushers.await_one()
            with table.freeze(is_delta=number > 0) as frozen:
                sources.append((frozen.meta, list(frozen.pages())))
                frozen.confirm()
    with table.freeze(is_delta=True) as frozen:
        sources.append((frozen.meta, list(frozen.pages())))

    restored.restore(sources)

    assert read(restored, IDS) == read(table, IDS)
    assert np.frombuffer(read(table, IDS), np.float32).sum() == 5 * 100 * table.version


def test_a_block_has_the_updates_of_its_version() -> None:
    spec = replace(DENSE["sgd"], initializer=specs.Constant(0.0))
    table, ones = block_of(spec), np.full(SIZE, -1.0, np.float32)
    with Pushers(lambda: table.apply(ones, 1.0)) as pushers:
        for _ in range(20):
            pushers.await_one()
            with table.freeze() as frozen:
                (page,) = frozen.pages()
                pushers.await_one()
                assert page["values"].tolist() == [frozen.meta["version"]] * SIZE


class Halfway(HelperThreads):
    """Runs the first task of an update, and the others once `go_on` is set."""

    def __init__(self) -> None:
        super().__init__(0)
        self.is_halfway, self.go_on = threading.Event(), threading.Event()

    def run(self, tasks: Any) -> None:
        first, *others = tasks
        first()
        self.is_halfway.set()
        assert self.go_on.wait(WAIT_S)
        for task in others:
            run_task(task)


def run_task(task: Task) -> None:
    task()


class Announced(UpdateGate):
    """The gate of a table, which announces that a freeze asks for it."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked = threading.Event()

    def shut(self) -> AbstractContextManager[None]:
        self.is_asked.set()
        return super().shut()


def test_a_freeze_waits_for_the_end_of_updates_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse_table, "LARGE_ROWS", 1)
    helpers, frozen = Halfway(), []
    table = SparseTable(COUNTING, 3, helpers=helpers)
    table._updates = gate = Announced()
    routed = table.route(IDS)
    pusher = threading.Thread(target=lambda: table.apply(routed, ONES, 1.0))
    freezer = threading.Thread(target=lambda: frozen.append(table.freeze()))

    pusher.start()
    assert helpers.is_halfway.wait(WAIT_S)
    freezer.start()
    assert gate.is_asked.wait(WAIT_S)
    assert frozen == []
    helpers.go_on.set()
    for thread in (pusher, freezer):
        thread.join(WAIT_S)

    pages = list(frozen[0].pages())
    assert sorted(ids_of_pages(pages)) == IDS.tolist()
    assert frozen[0].meta["version"] == 1


def test_a_walk_lets_pulls_in_while_it_holds_a_stripe(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slice is copied under the lock of readers."""
    table, read_inside = table_of(COUNTING, stripes=1), []
    table.apply(table.route(IDS), ONES, 1.0)
    frozen = table.freeze()
    (stripe,) = frozen._stripes
    take = stripe.contents[0].take

    def take_while_read(out: np.ndarray) -> int:
        reader = threading.Thread(target=lambda: read_inside.append(read(table, IDS[:5])))
        reader.start()
        reader.join(WAIT_S)
        return take(out)

    monkeypatch.setattr(stripe.contents[0], "take", take_while_read)
    next(frozen.pages())

    assert read_inside
