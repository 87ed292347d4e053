"""Local cuts of a running pserver: when they are taken, what replies name, what is recovered."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from psrt.core import failpoints
from psrt.core.specs import Async, CommunicationMode, Sync, to_json
from psrt.pserver.checkpoints import RecoveredPart, Settings, delta_files, served_job
from psrt.pserver.serving import effect_runner, updates
from psrt.pserver.serving.service import PserverService
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from psrt.rpc.wire import PUSH_DENSE
from psrt.storage.local_directory import LocalDirectory
from tests.support.carriers import eventually
from tests.support.inproc import InprocServer
from tests.support.pserver import AT_ONCE, CALL_TIMEOUT_S, TABLE

NAME, WAIT_S = "host-6170", 30.0


class RemovingSlowly(LocalDirectory):
    """A directory that a process which is killed while it removes files leaves; `left` has what
    there was before each removal."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.left: list[set[str]] = []

    def remove(self, *names: str) -> None:
        for name in names:
            self.left.append(set(self.names()))
            super().remove(name)


class DurableJob:
    """A pserver of a job with deltas, and a client of its only trainer."""

    def __init__(
        self, folder: Path, mode: CommunicationMode, recovered: RecoveredPart | None = None
    ) -> None:
        self.directory = RemovingSlowly(folder)
        self.service = PserverService(
            stripes=1,
            wait_timeout_s=WAIT_S,
            cuts=Settings(self.directory, delta_every_s=3600.0),
            recovered=recovered,
        )
        self.service.serves_as(NAME)
        self.server = InprocServer(self.service.handle)
        hello = pb.Hello(job_id="job", plan_hash="plan", trainers=1, mode=to_json(mode))
        hello.durability = "delta"
        self.client = Client("inproc:1", 0, 7, self.server, hello, retry=AT_ONCE)
        self.method = Method.EXCHANGE if isinstance(mode, Sync) else Method.PUSH

    def join(self) -> None:
        found = self.client.connect(CALL_TIMEOUT_S)
        one = pb.PserverProcess(endpoint="inproc:1", incarnation=found.incarnation)
        register = pb.Register(specs=[to_json(TABLE)], pservers=[one])
        header = pb.Header(register=register)
        self.client.call(Method.REGISTER, header=header, timeout_s=CALL_TIMEOUT_S)

    def push(self, key: pb.PushKey | None = None) -> pb.Header:
        header = pb.Header(push_key=key or self.client.next_push_key(), step=1)
        header.parts.add(kind=PUSH_DENSE, table="w")
        ones = [np.ones(4, np.float32)]
        reply = self.client.call(self.method, header=header, tensors=ones, timeout_s=CALL_TIMEOUT_S)
        return reply.header

    def attend(self, wanted: int = 0) -> int:
        """The reply to a ping; with `wanted` a local cut is asked for."""
        header = pb.Header(durable_to=wanted)
        reply = self.client.call(Method.ATTEND, header=header, timeout_s=CALL_TIMEOUT_S)
        return int(reply.header.durable_to)

    def await_durable(self, sequence: int) -> None:
        eventually(lambda: self.attend(sequence) >= sequence, "a local cut", WAIT_S)

    def values(self) -> list[float]:
        values: list[float] = self.service.tables.dense("w").read()[0].tolist()
        return values

    def close(self) -> None:
        self.client.close()
        self.server.stop()
        self.service.stop()


@contextmanager
def job(folder: Path, mode: CommunicationMode, **options: Any) -> Iterator[DurableJob]:
    made = DurableJob(folder, mode, **options)
    try:
        made.join()
        yield made
    finally:
        made.close()


every_mode = pytest.mark.parametrize("mode", [Async(), Sync("wait")], ids=["async", "sync"])


@every_mode
def test_replies_name_the_pushes_in_the_newest_local_cut(
    tmp_path: Path, mode: CommunicationMode
) -> None:
    with job(tmp_path, mode) as running:
        assert running.push().durable_to == 0
        running.push()
        running.await_durable(2)

        assert running.push().durable_to == 2
        assert running.attend() == 2
        status = running.service.status()

    assert status["durable_lag_pushes"] == 1
    assert status["durable_age_s"] is not None
    assert status["durable_problem"] == ""


@every_mode
def test_a_killed_pserver_knows_what_it_had_named_and_nothing_else(
    tmp_path: Path, mode: CommunicationMode
) -> None:
    with job(tmp_path, mode) as killed:
        for _ in range(2):
            killed.push()
        killed.await_durable(2)
        killed.push()
        recovered = served_job.find(killed.directory, NAME)
        assert recovered is not None
        assert recovered.number > 0
    with job(tmp_path, mode, recovered=recovered) as again:
        assert again.attend() == 2
        assert again.values() == [0.0] * 4  # 1, less a half for each push
        for sequence in (1, 2, 3):
            again.push(pb.PushKey(incarnation=7, sequence=sequence))

        assert again.values() == [-0.5] * 4
        again.await_durable(3)
        newest = served_job.find(again.directory, NAME)
        assert newest is not None
        assert (newest.process, newest.number > recovered.number) == (2, True)


def test_a_first_pserver_without_a_complete_cut_begins_a_term_of_its_own(tmp_path: Path) -> None:
    with job(tmp_path, Async()) as killed:
        killed.push()
        killed.await_durable(1)
        found = served_job.take_over(killed.directory, NAME)

        assert found is not None
        assert (found.cut.number, found.number > 0) == (0, True)
        assert found.term is not None
        assert found.term.number == 2


def test_a_trainer_is_told_when_its_end_is_durable(tmp_path: Path) -> None:
    with job(tmp_path, Async()) as running:
        running.client.hello.trainers = 1
        running.push()
        eventually(lambda: running.client.complete(CALL_TIMEOUT_S).recorded, "a local cut", WAIT_S)


def test_a_local_cut_under_way_at_the_end_of_the_job_leaves_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, free, write = threading.Event(), threading.Event(), delta_files.write

    def held(*given: Any) -> int:
        begun.set()
        assert free.wait(WAIT_S)
        return write(*given)

    with job(tmp_path, Async()) as running:
        running.push()
        running.await_durable(1)
        monkeypatch.setattr(delta_files, "write", held)
        running.push()
        running.attend(2)
        assert begun.wait(WAIT_S)
        assert running.client.complete(CALL_TIMEOUT_S).ended
        running.client.confirm()
        free.set()
        running.service.moments.finish(lambda: False)

        assert running.directory.names("deltas-") == []


def test_a_local_cut_that_fails_is_visible_and_the_next_one_has_its_changes(tmp_path: Path) -> None:
    with job(tmp_path, Async()) as running:
        running.push()
        running.await_durable(1)
        failpoints.arm("delta.before_record=fail")
        try:
            running.push()
            eventually(
                lambda: running.attend(2) == 1 and running.service.status()["durable_problem"],
                "a local cut that fails",
                WAIT_S,
            )
        finally:
            failpoints.arm("")
        running.await_durable(2)

        assert running.service.status()["durable_problem"] == ""
        recovered = served_job.find(running.directory, NAME)
        assert recovered is not None
        assert recovered.state["pushes"]["admitted"] == [[0, 7, 2, []]]


def test_a_local_cut_waits_for_the_push_under_way_and_holds_others_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, free, apply_now = threading.Event(), threading.Event(), updates.apply_now
    applied: list[int] = []

    def held(pushes: Any, step: int, *rest: Any) -> None:
        begun.set()
        assert free.wait(WAIT_S)
        apply_now(pushes, step, *rest)
        applied.append(step)

    with job(tmp_path, Async()) as running:
        monkeypatch.setattr(effect_runner, "apply_now", held)
        runner, found = running.service._runner, list[list[int]]()
        first = threading.Thread(target=running.push)
        first.start()
        assert begun.wait(WAIT_S)
        between = threading.Thread(
            target=lambda: runner.between_updates(lambda state, now: found.append(list(applied)))
        )
        between.start()
        eventually(lambda: runner._is_paused, "a pause", WAIT_S)
        second = threading.Thread(target=running.push)
        second.start()
        assert not found
        assert running.service.status()["global_step"] == 1  # the second one is not admitted
        free.set()
        for thread in (first, between, second):
            thread.join(WAIT_S)

    assert found == [[0]]
    assert applied == [0, 1]


def test_one_that_is_killed_while_it_deletes_its_files_leaves_no_damaged_ones(
    tmp_path: Path,
) -> None:
    """Its successor finds nothing to recover, or all of it."""
    with job(tmp_path, Async()) as running:
        for sequence in (1, 2, 3):
            running.push()
            running.await_durable(sequence)
        running.directory.left.clear()
        running.client.complete(CALL_TIMEOUT_S)
        running.client.confirm()
        eventually(lambda: not _own(running.directory.names()), "the end of the files", WAIT_S)
        left = [_own(names) for names in running.directory.left]

    assert any("served-host-6170.json" in names for names in left)
    assert all(names == left[0] for names in left if "served-host-6170.json" in names)


def _own(names: Iterable[str]) -> set[str]:
    """The files by which one pserver recovers."""
    return {name for name in names if name.startswith(("served-", "deltas-"))}
