"""A pserver that recovers a job with several tables, each of which loads when a test lets it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from psrt.core.errors import PsrtError
from psrt.core.specs import CommunicationMode, Sync, to_json
from psrt.pserver.checkpoints import RecoveredPart, Settings, served_job
from psrt.pserver.loading import TableLoad
from psrt.pserver.serving.service import PserverService
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from psrt.rpc.wire import PULL_ROWS, PUSH_ROWS
from psrt.storage.local_directory import LocalDirectory
from tests.support.carriers import eventually
from tests.support.frozen import BASE, WIDTH
from tests.support.inproc import InprocServer
from tests.support.pserver import AT_ONCE, CALL_TIMEOUT_S, TABLE

NAME, WAIT_S = "host-6170", 30.0
ROWS = {name: replace(BASE, name=name) for name in ("a", "b")}
IDS = np.arange(40)
T = TypeVar("T")


class Gates:
    """Holds back the load of each table until its gate opens; `begun` are the tables in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._gates = {name: threading.Event() for name in ("w", *ROWS)}
        self.begun: list[str] = []
        put = TableLoad.put

        def held(load: TableLoad, stage: int, number: int) -> None:
            self.begun.append(load.name)
            assert self._gates[load.name].wait(WAIT_S)
            put(load, stage, number)

        monkeypatch.setattr(TableLoad, "put", held)

    def open(self, *names: str) -> None:
        """Let these tables load; without names all."""
        for name in names or self._gates:
            self._gates[name].set()


class ManyTables:
    """A pserver of a job with `durability = "delta"`, and a client of its only trainer."""

    def __init__(
        self,
        folder: Path,
        mode: CommunicationMode,
        recovered: RecoveredPart | None = None,
        threads: int = 1,
    ) -> None:
        self.directory, self.ends = LocalDirectory(folder), list[PsrtError | None]()
        self.service = PserverService(
            stripes=2,
            wait_timeout_s=WAIT_S,
            cuts=Settings(self.directory, delta_every_s=3600.0),
            recovered=recovered,
            helper_threads=threads - 1,
            on_end=self.ends.append,
        )
        self.service.serves_as(NAME)
        self.server = InprocServer(self.service.handle)
        hello = pb.Hello(job_id="job", plan_hash="plan", trainers=1, mode=to_json(mode))
        hello.durability = "delta"
        self.client = Client("inproc:1", 0, 7, self.server, hello, retry=AT_ONCE)
        self._method = Method.EXCHANGE if isinstance(mode, Sync) else Method.PUSH
        self._pool = ThreadPoolExecutor(8)

    def join(self) -> None:
        found = self.client.connect(CALL_TIMEOUT_S)
        one = pb.PserverProcess(endpoint="inproc:1", incarnation=found.incarnation)
        specs = [to_json(spec) for spec in (TABLE, *ROWS.values())]
        header = pb.Header(register=pb.Register(specs=specs, pservers=[one]))
        self.client.call(Method.REGISTER, header=header, timeout_s=CALL_TIMEOUT_S)

    def push(self, table: str, sequence: int) -> pb.Header:
        """Push ones, as push number `sequence`."""
        key = pb.PushKey(incarnation=7, sequence=sequence)
        header = pb.Header(push_key=key, step=1)
        header.parts.add(kind=PUSH_ROWS, table=table)
        tensors = [IDS, np.full((len(IDS), WIDTH), sequence, np.float32)]
        reply = self.client.call(
            self._method, header=header, tensors=tensors, timeout_s=CALL_TIMEOUT_S
        )
        return reply.header

    def pull(self, table: str) -> np.ndarray:
        header = pb.Header()
        header.parts.add(kind=PULL_ROWS, table=table)
        reply = self.client.call(
            Method.PULL, header=header, tensors=[IDS], timeout_s=CALL_TIMEOUT_S
        )
        return np.array(reply.tensors[0])

    def resent(self) -> None:
        self.client.call(Method.RESENT, header=pb.Header(), timeout_s=CALL_TIMEOUT_S)

    def later(self, call: Callable[[], T]) -> Future[T]:
        """Call on another thread."""
        return self._pool.submit(call)

    def await_waiting(self, calls: int) -> None:
        waits = self.service._loader._waits
        eventually(lambda: len(waits) == calls, f"{calls} waiting calls", WAIT_S)

    def await_durable(self, sequence: int) -> None:
        def is_durable() -> bool:
            header = pb.Header(durable_to=sequence)
            reply = self.client.call(Method.ATTEND, header=header, timeout_s=CALL_TIMEOUT_S)
            return bool(reply.header.durable_to >= sequence)

        eventually(is_durable, "a local cut", WAIT_S)

    def close(self) -> None:
        self.client.close()
        self.server.stop()
        self.service.stop()
        self._pool.shutdown()


@contextmanager
def killed_job(folder: Path, mode: CommunicationMode) -> Iterator[tuple[RecoveredPart, ManyTables]]:
    """The state of a pserver that was killed behind push 2, and the same job that goes on."""
    whole = ManyTables(folder / "whole", mode)
    killed = ManyTables(folder / "killed", mode)
    try:
        for each in (whole, killed):
            each.join()
            each.push("a", 1)
            each.push("b", 2)
        killed.await_durable(2)
        killed.service._cuts.durability.stop()
        assert killed.service._cuts.durability.finish(WAIT_S)
        killed.push("b", 3)  # is lost: no local cut is written any more
        found = served_job.find(killed.directory, NAME)
        assert found is not None
        yield found, whole
    finally:
        whole.close()
        killed.close()
