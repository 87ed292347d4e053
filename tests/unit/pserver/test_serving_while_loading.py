"""A recovering pserver serves the tables that are loaded, and calls for others wait for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from psrt.core import failpoints
from psrt.core.errors import JobError, PsrtError
from psrt.core.specs import Async, CommunicationMode, Sync
from psrt.pserver.checkpoints import RecoveredPart
from psrt.pserver.decisions import Freeze
from psrt.pserver.loading.waiting_calls import tables_of
from psrt.rpc import pb
from psrt.rpc.methods import Method
from psrt.rpc.wire import PULL_DENSE, PUSH_ROWS
from tests.support.carriers import eventually
from tests.support.loading import WAIT_S, Gates, ManyTables, killed_job

every_mode = pytest.mark.parametrize("mode", [Async(), Sync("wait")], ids=["async", "sync"])


@contextmanager
def recovering(
    folder: Path, mode: CommunicationMode, found: RecoveredPart, threads: int = 1
) -> Iterator[ManyTables]:
    made = ManyTables(folder / "killed", mode, found, threads)
    try:
        made.join()
        yield made
    finally:
        made.close()


@every_mode
def test_calls_for_loaded_tables_proceed_and_others_wait_for_theirs(
    tmp_path: Path, mode: CommunicationMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    with killed_job(tmp_path, mode) as (found, whole):
        gates = Gates(monkeypatch)
        with recovering(tmp_path, mode, found, threads=3) as job:
            gates.open("w", "a")
            eventually(lambda: job.service.status()["loading"] == {"b": 0}, "tables", WAIT_S)
            job.push("a", 1)  # is known, and answered
            late = job.later(lambda: [job.push("b", sequence) for sequence in (2, 3)])
            job.await_waiting(1)
            assert not late.done()
            gates.open()
            late.result(WAIT_S)
            job.resent()
            whole.push("b", 3)

            assert job.service.status()["loading"] == {}
            for table in ("a", "b"):
                assert np.array_equal(job.pull(table), whole.pull(table))
            assert [t.version for t in job.service.tables.all()] == [
                t.version for t in whole.service.tables.all()
            ]


def test_a_table_that_a_call_waits_for_is_loaded_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with killed_job(tmp_path, Async()) as (found, _):
        gates = Gates(monkeypatch)
        with recovering(tmp_path, Async(), found) as job:
            late = job.later(lambda: job.push("b", 3))
            job.await_waiting(1)
            gates.open()
            late.result(WAIT_S)

    assert gates.begun[0] == "w"
    assert gates.begun[1] == "b"
    assert "a" in gates.begun


def test_no_cut_and_no_sweep_sees_a_table_that_is_being_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with killed_job(tmp_path, Async()) as (found, _):
        gates = Gates(monkeypatch)
        with recovering(tmp_path, Async(), found, threads=3) as job:
            service, files = job.service, job.directory.names()
            gates.open("w", "a")
            eventually(lambda: service.status()["loading"] == {"b": 0}, "tables", WAIT_S)
            job.push("a", 3)
            writer = service._cuts.durability._writer
            assert writer is not None
            writer.write()

            assert job.directory.names() == files  # no local cut of what lacks a table
            assert [table.spec.name for table in service.tables.all_sparse()] == ["a"]
            with pytest.raises(JobError, match="still being loaded"):
                service._runner.ask(lambda state, now: service._cuts.freeze(Freeze(1, ()), state))
            assert service.source().take(is_full=True) is None
            gates.open()
            job.await_durable(3)


def test_a_table_that_cannot_be_loaded_ends_the_pserver_and_leaves_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with killed_job(tmp_path, Async()) as (found, _):
        gates = Gates(monkeypatch)
        failpoints.arm("restore.table=fail")
        try:
            with recovering(tmp_path, Async(), found) as job:
                late = job.later(lambda: job.push("b", 3))
                job.await_waiting(1)
                files = job.directory.names()
                gates.open()
                with pytest.raises(PsrtError, match=r"failed restore\.table"):
                    late.result(WAIT_S)
                eventually(lambda: job.ends, "the end of the pserver", WAIT_S)
                with pytest.raises(PsrtError, match=r"failed restore\.table"):
                    job.push("a", 4)
        finally:
            failpoints.arm("")

        assert "failed restore.table" in str(job.ends[0])
        assert job.directory.names() == files


def test_a_pserver_that_ends_does_not_wait_for_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with killed_job(tmp_path, Async()) as (found, _):
        gates = Gates(monkeypatch)
        with recovering(tmp_path, Async(), found) as job:
            late = job.later(lambda: job.push("b", 3))
            job.await_waiting(1)
            job.service.stop()
            with pytest.raises(PsrtError, match="shutting down"):
                late.result(WAIT_S)
            with pytest.raises(PsrtError, match="shutting down"):
                job.push("b", 3)
            gates.open()


def test_calls_wait_for_the_tables_that_they_need_and_no_others() -> None:
    parts = [pb.Part(kind=PUSH_ROWS, table="a"), pb.Part(kind=PULL_DENSE, table="w")]
    shrink, export = pb.Shrink(tables=["b"]), pb.Export(table="a")
    named = {
        Method.PULL: ["a", "w"],
        Method.PUSH: ["a", "w"],
        Method.EXCHANGE: ["a", "w"],
        Method.SHRINK: ["b"],
        Method.EXPORT: ["a"],
        Method.CUT: None,
    }
    for method in Method:
        takes_parts = method in (Method.PULL, Method.PUSH, Method.EXCHANGE)
        header = pb.Header(method=method, parts=parts if takes_parts else [])
        header.shrink.CopyFrom(shrink)
        header.export.CopyFrom(export)
        assert tables_of(header) == named.get(method, [])
    assert tables_of(pb.Header(method=Method.SHRINK)) is None
