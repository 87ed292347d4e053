"""Real pservers for tests: in this process without sockets, or as the daemon's own process."""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from psrt.core import specs
from psrt.core.clock import Clock
from psrt.pserver.serving.service import PserverService
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.dialing import Carrier
from psrt.rpc.methods import Method
from psrt.rpc.retry import RetryPolicy
from psrt.rpc.wire import PULL_DENSE, PUSH_DENSE
from tests.support.carriers import eventually
from tests.support.inproc import Faults, InprocServer
from tests.support.processes import DEADLINE_S, Process, exit_code, start

AT_ONCE = RetryPolicy(initial_s=0.001, max_s=0.01, budget_s=5.0)
CALL_TIMEOUT_S = 30.0
TABLE = specs.DenseTableSpec(
    name="w",
    parameter="w",
    shape=(4,),
    offset=0,
    size=4,
    initializer=specs.Constant(1.0),
    optimizer=specs.Sgd(),
    learning_rate=specs.ConstantRate(0.5),
    seed=1,
)


@dataclass
class InprocPserver:
    """A service, its in-process server, and the clients made for it."""

    service: PserverService
    server: InprocServer
    mode: specs.CommunicationMode
    trainers: int

    def client(self, trainer: int = 0, incarnation: int = 0, *, mode: Any = None) -> Client:
        """A client of `trainer` that has not connected yet."""
        hello = pb.Hello(
            job_id="test",
            plan_hash="plan",
            trainers=self.trainers,
            mode=specs.to_json(mode or self.mode),
        )
        number = incarnation or 1000 + trainer
        return Client("inproc", trainer, number, self.server, hello, retry=AT_ONCE)

    def join(self, trainer: int = 0, *tables: specs.TableSpec, incarnation: int = 0) -> Client:
        """A client that has sent HELLO and registered `tables`."""
        client = self.client(trainer, incarnation)
        client.connect(CALL_TIMEOUT_S)
        register(client, *tables)
        return client


@contextlib.contextmanager
def inproc_pserver(
    *,
    trainers: int = 1,
    mode: specs.CommunicationMode | None = None,
    stripes: int = 3,
    wait_timeout_s: float = 20.0,
    clock: Clock | None = None,
) -> Iterator[InprocPserver]:
    """A real service behind `InprocServer`; with a `clock` nothing expires by itself."""
    service = PserverService(stripes=stripes, wait_timeout_s=wait_timeout_s, clock=clock)
    if clock is None:
        service.start()
    server = InprocServer(service.handle, Faults())
    try:
        yield InprocPserver(service, server, mode or specs.Sync("wait"), trainers)
    finally:
        server.stop()
        service.stop()


def register(client: Client, *tables: specs.TableSpec) -> None:
    header = pb.Header(register=pb.Register(specs=[specs.to_json(spec) for spec in tables]))
    client.call(Method.REGISTER, header=header, timeout_s=CALL_TIMEOUT_S)


def joined(
    endpoint: str,
    trainer: int = 0,
    *,
    trainers: int = 1,
    policy: str = "wait",
    mode: specs.CommunicationMode | None = None,
    carrier: Carrier = "stream",
    retry: RetryPolicy = AT_ONCE,
) -> Client:
    """A trainer of a job, synchronous unless `mode` is given, that has registered `TABLE`."""
    text = specs.to_json(mode or specs.Sync(policy))
    hello = pb.Hello(job_id="job", plan_hash="plan", trainers=trainers, mode=text)
    client = Client(endpoint, trainer, 7 + trainer, carrier, hello, retry=retry)
    client.connect(CALL_TIMEOUT_S)
    register(client, TABLE)
    return client


def onlooker(endpoint: str, carrier: Carrier = "stream") -> Client:
    """A client without a job, which may ask for STATUS."""
    client = Client(endpoint, 0, 1, carrier, pb.Hello(), retry=AT_ONCE)
    client.connect(CALL_TIMEOUT_S)
    return client


def status(client: Client) -> dict[str, Any]:
    reply = client.call(Method.STATUS, timeout_s=CALL_TIMEOUT_S)
    return dict(json.loads(reply.header.status_json))


def exchange(client: Client) -> np.ndarray:
    """Push ones to `TABLE`; its values after the round."""
    header = pb.Header(push_key=client.next_push_key())
    header.parts.add(kind=PUSH_DENSE, table="w")
    header.parts.add(kind=PULL_DENSE, table="w")
    ones = np.ones(4, np.float32)
    reply = client.call(Method.EXCHANGE, header=header, tensors=[ones], timeout_s=CALL_TIMEOUT_S)
    return reply.tensors[0]


@dataclass
class DaemonProcess:
    """A running `psrt pserver`; `facts` is its ready file."""

    process: Process
    facts: dict[str, Any]
    log: Path

    @property
    def endpoint(self) -> str:
        return str(self.facts["endpoint"])

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        return self.exit_code()

    def exit_code(self) -> int:
        """Wait for the end; a failure has the last lines of the log."""
        return exit_code(self.process, self.log)


@contextlib.contextmanager
def daemon(
    directory: Path, *flags: str, is_forked: bool = True, **variables: str
) -> Iterator[DaemonProcess]:
    """A pserver process on a free port, once its ready file is there; killed in the end."""
    ready, log = directory / "ready.json", directory / "pserver.log"
    given = "--port", "0", "--ready-file", str(ready), *flags
    process = start_daemon(log, *given, is_forked=is_forked, **variables)
    try:

        def is_ready() -> bool:
            assert process.poll() is None, f"the pserver ended early:\n{log.read_text()}"
            return ready.exists()

        eventually(is_ready, "the ready file of the pserver", DEADLINE_S, logs=[log])
        yield DaemonProcess(process, json.loads(ready.read_text()), log)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def start_daemon(log: Path, *flags: str, is_forked: bool = True, **variables: str) -> Process:
    """`psrt pserver` with its output in `log`, and environment `variables`."""
    return start(log, "pserver", *flags, variables=variables, is_forked=is_forked)
