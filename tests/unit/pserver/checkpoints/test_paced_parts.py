"""Parts of cuts that are written slowly while trainers push, and at once if somebody waits."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from psrt.config.sections import PserverConfig
from psrt.coordinator.part_chain import PartOutcome
from psrt.core.threads import CrashReport
from psrt.pserver.checkpoints import Cutting, PartPaces, Settings, delta_files
from psrt.pserver.eviction import Upkeep
from psrt.pserver.process.beginning import cut_settings
from psrt.pserver.serving.durable.delta_writer import DeltaWriter
from psrt.pserver.tables import Meters, TableRegistry
from psrt.storage.local_directory import LocalDirectory
from psrt.storage.pacing import CATCH_UP_S, RateLimit, WritePace
from tests.support.clock import ManualClock
from tests.support.frozen import BASE, WIDTH

WAIT_S = 30.0
FACTS: dict[str, Any] = {"participants": []}


class AskedClock(ManualClock):
    """A clock that a thread which writes a part asks before it waits: then `asked` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()

    def now(self) -> float:
        if threading.current_thread().name.startswith("cut "):
            self.asked.set()
        return super().now()


class Watched:
    """Facts of a frozen table that a pace asks for."""

    def __init__(self, size_bytes: int, buffered_bytes: int = 0) -> None:
        self.size_bytes, self.buffered_bytes = size_bytes, buffered_bytes


@contextmanager
def slow_cutting(folder: Path, bytes_per_s: float = 0.5) -> Iterator[SimpleNamespace]:
    """A pserver with some rows, which writes a part of them in hours; `report` gets its end."""
    tables, crashes, clock = TableRegistry(1), CrashReport(), AskedClock()
    tables.register([BASE])
    (table,) = tables.all_sparse()
    ids = np.arange(100)
    table.apply(table.route(ids), np.ones((100, WIDTH), np.float32), 0.1)
    reported: list[tuple[int, str, str]] = []

    def report(*facts: Any) -> PartOutcome:
        reported.append(facts)
        return PartOutcome.COMPLETE

    settings = Settings(LocalDirectory(folder), timeout_s=1e9, bytes_per_s=bytes_per_s)
    upkeep = Upkeep(tables.all_sparse, Meters(), lambda: 0, lambda: 0)
    cutting = Cutting(settings, tables, upkeep, crashes, report, clock)
    yield SimpleNamespace(cutting=cutting, clock=clock, reported=reported)
    cutting.hurry()
    assert cutting.wait(WAIT_S)
    assert crashes.error is None


def test_a_paced_part_is_written_once_somebody_is_in_a_hurry(tmp_path: Path) -> None:
    with slow_cutting(tmp_path) as slow:
        slow.cutting.freeze(1, FACTS, is_paced=True)
        assert slow.clock.asked.wait(WAIT_S)
        assert not slow.cutting.wait(0.0)

        slow.cutting.hurry()

        assert slow.cutting.wait(WAIT_S)
        ((number, record, problem),) = slow.reported
        assert (number, problem) == (1, "")
        assert record


def test_a_part_without_pushes_beside_it_is_not_paced(tmp_path: Path) -> None:
    with slow_cutting(tmp_path) as slow:
        slow.cutting.freeze(1, FACTS)

        assert slow.cutting.wait(WAIT_S)


def test_parts_that_begin_while_a_pserver_ends_are_not_paced(tmp_path: Path) -> None:
    with slow_cutting(tmp_path) as slow:
        slow.cutting.hurry(for_s=30.0)
        slow.clock.advance(29.0)

        slow.cutting.freeze(1, FACTS, is_paced=True)

        assert slow.cutting.wait(WAIT_S)
        slow.clock.advance(2.0)
        assert not slow.clock.asked.is_set()
        slow.cutting.freeze(2, FACTS, is_paced=True)
        assert slow.clock.asked.wait(WAIT_S)


def test_many_copies_of_changed_rows_end_the_waits() -> None:
    paces = PartPaces(1.0, ManualClock())
    table: Any = Watched(1 << 30, buffered_bytes=65 << 20)
    pace = paces.expect()
    paces.begin(pace, [table], 1e12)

    pace.wrote(1 << 30)  # thirty years at that rate

    assert pace.waits


@pytest.mark.parametrize(("given", "bytes_per_s"), [(0.0, 0.0), (1.5, 1.5 * (1 << 20))])
def test_the_setting_is_in_mib(tmp_path: Path, given: float, bytes_per_s: float) -> None:
    config = PserverConfig(checkpoint_dir=str(tmp_path), checkpoint_mib_per_s=given)

    settings = cut_settings(config)

    assert settings is not None
    assert settings.bytes_per_s == bytes_per_s


def test_no_limit_needs_no_waits() -> None:
    paces = PartPaces(0.0, ManualClock())
    table: Any = Watched(1 << 30)
    pace = paces.expect()
    paces.begin(pace, [table], 1.0)

    assert not pace.waits


@pytest.mark.parametrize(("is_full", "within_s"), [(False, 0.5), (True, 300.0)])
def test_local_cuts_are_written_in_a_tenth_of_the_time_between_them_and_full_ones_slowly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_full: bool, within_s: float
) -> None:
    """Until it is on disk, trainers keep the pushes in it, and updates copy what they change."""
    limits: list[RateLimit] = []

    def write(directory: object, name: str, cut: object, pace: WritePace) -> int:
        assert pace._limit is not None
        limits.append(pace._limit)
        return 1

    monkeypatch.setattr(delta_files, "write", write)
    cut = SimpleNamespace(tables=[Watched(1 << 30)], is_full=is_full, number=1, point=None)
    cuts = SimpleNamespace(confirm=lambda written: None)
    runner = SimpleNamespace(between_updates=lambda take: cut)
    settings = Settings(LocalDirectory(tmp_path), bytes_per_s=1.0, delta_every_s=5.0)
    writer: Any = DeltaWriter
    writer(settings, cuts, runner, None, lambda point: None, ManualClock()).write()

    assert limits[0].spend(1 << 30, 0.0) == pytest.approx(within_s - CATCH_UP_S)
