"""Tables filled page by page on several threads have the bits of the cut."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from psrt.core import failpoints
from psrt.core.errors import ErrorCode, PsrtError, TableError
from psrt.core.specs import TableSpec
from psrt.core.threads import CrashReport
from psrt.pserver.checkpoints import SavedCut, find_cut
from psrt.pserver.loading import TableLoad, TableLoader, table_load
from psrt.pserver.tables import TableRegistry
from psrt.storage.local_directory import LocalDirectory
from tests.support.chains import ChainedPservers, all_state, specs_of
from tests.support.clock import ManualClock
from tests.support.frozen import BASE, DENSE, SPARSE, pushes_of

WAIT_S = 30.0
KINDS = ["adagrad", "counted", "growing", "of float16", "with a life"]


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psrt.pserver.frozen.frozen_rows.PAGE_BYTES", 4096)


def chain_of(folder: Path, specs: list[list[TableSpec]]) -> tuple[SavedCut, object]:
    """A cut that builds on others, with ids that were dropped and begun anew, and its state."""
    made = ChainedPservers(LocalDirectory(folder), specs)
    try:
        for number, push in enumerate(pushes := pushes_of(5, 9)):
            made.push(push)
            if number % 3 == 2:
                made.drop(pushes[number - 1].ids[::4])
                made.push(pushes[number - 1])
                made.cut()
    finally:
        made.close()
    return find_cut(LocalDirectory(folder), "latest"), made.states[3]


def loads_of(
    specs: list[TableSpec], cut: SavedCut, stripes: int = 2
) -> tuple[TableRegistry, list[TableLoad]]:
    tables, loads = TableRegistry(stripes), list[TableLoad]()
    tables.register(
        specs, are_loaded=False, prepare=lambda table: loads.append(TableLoad(table, cut))
    )
    return tables, loads


@contextmanager
def loader(tables: TableRegistry, threads: int) -> Iterator[TableLoader]:
    crashes, errors = CrashReport(), list[PsrtError]()
    made = TableLoader(tables, threads, ManualClock(), crashes, errors.append, lambda: None)
    try:
        yield made
    finally:
        made.stop()
        assert crashes.error is None
    assert not errors


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("kind", KINDS)
def test_pages_of_a_stage_may_be_put_in_any_order(tmp_path: Path, kind: str) -> None:
    specs = specs_of(SPARSE[kind])
    cut, expected = chain_of(tmp_path, specs)
    draw, registries = random.Random(kind), []
    for each in specs:
        tables, loads = loads_of(each, cut)
        for load in loads:
            for stage, count in enumerate(load.pages):
                for number in draw.sample(range(count), count):
                    load.put(stage, number)
            load.close()
            tables.loaded(load.name)
        assert max(max(load.pages) for load in loads) > 2
        registries.append(tables)

    assert all_state(registries) == expected


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("threads", [1, 3])
def test_threads_fill_the_tables_of_any_number_of_pservers(tmp_path: Path, threads: int) -> None:
    cut, expected = chain_of(tmp_path, specs_of(BASE))
    (whole,) = specs_of(BASE, 1)
    tables, loads = loads_of(whole, cut)
    with loader(tables, threads) as filling:
        assert tables.loading == {load.name for load in loads}
        future = filling.wait_for(None, WAIT_S)
        filling.load(loads)
        assert future is not None
        future.result(WAIT_S)

        assert filling.describe() == {}
        assert filling.wait_for(None, WAIT_S) is None
    assert all_state([tables]) == expected


def test_tables_that_are_added_later_are_filled_too(tmp_path: Path) -> None:
    cut, expected = chain_of(tmp_path, specs_of(BASE))
    (whole,) = specs_of(BASE, 1)
    tables = TableRegistry(2)
    with loader(tables, 2) as filling:
        for spec in whole:
            loads: list[TableLoad] = []
            tables.register(
                [spec], are_loaded=False, prepare=lambda t, to=loads: to.append(TableLoad(t, cut))
            )
            filling.load(loads)
            future = filling.wait_for([spec.name], WAIT_S)
            if future is not None:
                future.result(WAIT_S)
    assert all_state([tables]) == expected


def test_a_table_that_the_cut_does_not_fit_is_refused_before_it_exists(tmp_path: Path) -> None:
    cut, _ = chain_of(tmp_path, specs_of(BASE))
    tables = TableRegistry(2)
    for spec in (replace(BASE, seed=9), replace(DENSE["adagrad"], name="w.9", offset=60, size=60)):
        with pytest.raises(TableError, match="cannot be restored"):
            tables.register(
                [spec], are_loaded=False, prepare=lambda table: TableLoad(table, cut) and None
            )

    assert (len(tables), tables.loading) == (0, frozenset())


def test_a_wait_ends_at_its_deadline_and_names_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut, _ = chain_of(tmp_path, specs_of(BASE))
    (whole,) = specs_of(BASE, 1)
    free, clock, put = threading.Event(), ManualClock(), TableLoad.put

    def held(load: TableLoad, stage: int, number: int) -> None:
        assert load.is_dense or free.wait(WAIT_S)
        put(load, stage, number)

    monkeypatch.setattr(TableLoad, "put", held)
    tables, loads = loads_of(whole, cut)
    filling = TableLoader(tables, 1, clock, CrashReport(), lambda error: None, lambda: None)
    late, patient = filling.wait_for([BASE.name, "w.0"], 5.0), filling.wait_for([BASE.name], 9.0)
    filling.load(loads)
    clock.advance(6.0)
    filling.expire()
    assert late is not None
    assert patient is not None
    error = late.exception(WAIT_S)
    free.set()
    patient.result(WAIT_S)

    assert isinstance(error, PsrtError)
    assert error.code is ErrorCode.RECOVERING
    assert f"loads table '{BASE.name}' (0 %)" in error.message


def test_an_error_ends_all_waits_and_no_further_table_is_filled(tmp_path: Path) -> None:
    cut, _ = chain_of(tmp_path, specs_of(BASE))
    (whole,) = specs_of(BASE, 1)
    tables, loads = loads_of(whole, cut)
    errors, failed = list[PsrtError](), threading.Event()

    def on_failed(error: PsrtError) -> None:
        errors.append(error)
        failed.set()

    filling = TableLoader(tables, 2, ManualClock(), CrashReport(), on_failed, lambda: None)
    future = filling.wait_for(None, WAIT_S)
    failpoints.arm("restore.table=fail@2")
    try:
        filling.load(loads)
        assert failed.wait(WAIT_S)
    finally:
        failpoints.arm("")

    assert future is not None
    assert future.exception(WAIT_S) in errors
    assert filling.has_failed
    with pytest.raises(PsrtError, match=r"failed restore\.table"):
        filling.wait_for(None, WAIT_S)


def test_neighbours_are_taken_from_parts_that_are_far_from_each_other() -> None:
    assert table_load.in_turn(range(2, 10)) == [2, 4, 6, 8, 3, 5, 7, 9]
    assert sorted(table_load.in_turn(range(7))) == list(range(7))
    assert table_load.in_turn(range(0)) == []
