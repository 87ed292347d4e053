"""One thread prepares slabs that are short, until it is stopped."""

from __future__ import annotations

import threading

import numpy as np

from psrt.core.specs import ConstantRate, Sgd, SparseTableSpec, Uniform
from psrt.core.threads import CrashReport
from psrt.kernels.tables.growable_memory import Slab
from psrt.pserver.tables.slab_preallocator import SlabPreallocator
from psrt.pserver.tables.sparse_table import SparseTable

WAIT_S = 30.0


class RecordingSlab(Slab):
    """Records that it was prepared, and by which thread."""

    def __init__(self) -> None:
        super().__init__(2)
        self.is_prepared, self.thread_name = threading.Event(), ""

    def prepare(self) -> None:
        self.thread_name = threading.current_thread().name
        self.is_prepared.set()


def test_slabs_are_prepared_by_a_thread_of_its_own() -> None:
    crashes = CrashReport()
    preallocator, slabs = SlabPreallocator(crashes), [RecordingSlab() for _ in range(3)]

    for slab in slabs:
        preallocator.ask(slab)

    assert all(slab.is_prepared.wait(WAIT_S) for slab in slabs)
    assert {slab.thread_name for slab in slabs} == {"preallocator"}
    preallocator.stop()
    crashes.check()


def test_what_is_asked_after_the_end_is_not_done_and_needs_no_thread() -> None:
    preallocator, slab = SlabPreallocator(CrashReport()), RecordingSlab()

    preallocator.stop()
    preallocator.ask(slab)

    assert not slab.thread_name


def test_a_growing_table_asks_for_memory() -> None:
    asked: list[Slab] = []

    class Asked(SlabPreallocator):
        def ask(self, slab: Slab) -> None:
            asked.append(slab)

    spec = SparseTableSpec("t", 256, Uniform(-1.0, 1.0), Sgd(), ConstantRate(1.0), 1)
    table = SparseTable(spec, 1, preallocator=Asked(CrashReport()))

    few, many = np.arange(10), np.arange(10, 10_000)
    table.apply(table.route(few), np.zeros((len(few), 256), np.float32), 0.1)
    assert not asked
    table.apply(table.route(many), np.zeros((len(many), 256), np.float32), 0.1)
    assert asked
