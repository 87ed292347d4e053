"""Global shuffle: every record of every trainer goes to a trainer drawn for it, once.

    open a port ─ meet: address ─ split, send to all, receive from all ─ meet: counts sent ─
    meet: counts received ─ all compare all counts ─ close the port

Trainers meet at the first pserver and send to each other over the job's carrier. Memory: the
records that arrived, those not sent yet, and `BATCHES_UNDER_WAY` batches between. Every wait has a
deadline; an error names its trainer and is passed to the others at the next meeting.
A failed shuffle returns no records to any trainer.
"""

from __future__ import annotations

import contextlib
import secrets
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from psrt.communicator.requests import EndpointThreads, results
from psrt.core.errors import ConfigError, PsrtError, from_code
from psrt.core.threads import CrashReport
from psrt.data.datasets import Records, Scattering, tensors_of
from psrt.rpc import pb
from psrt.rpc.access import gate_of, identity
from psrt.rpc.client import Client
from psrt.rpc.dialing import Carrier
from psrt.rpc.methods import Method
from psrt.rpc.retry import RetryPolicy
from psrt.rpc.server import Server
from psrt.trainer.shuffle.inbox import Inbox
from psrt.trainer.shuffle.tally import Word, check, check_kinds, words_of

BATCHES_UNDER_WAY = 16
GIVE_UP_S = 10.0
"""Time for reaching a trainer, which listens from before its address is known until the end."""

_GRACE_S = 1.0
_LAST_WORD_S = 5.0


class Tell(Protocol):
    """Meets the other trainers once more: writes a note, returns all notes if it `waits`."""

    def __call__(self, note: str, timeout_s: float, waits: bool = True) -> Sequence[str]: ...


@dataclass(frozen=True)
class Seat:
    """Identity of this trainer, and its way to the others.

    `host` is the address at which the others reach it.
    """

    trainer: int
    trainers: int
    job_id: str
    carrier: Carrier = "stream"
    host: str = "127.0.0.1"
    timeout_s: float = 180.0


def exchange(scattering: Scattering, seat: Seat, tell: Tell) -> deque[Records]:
    """Return this trainer's records after the shuffle, ordered by their former trainer.

    `timeout_s` of the seat bounds each meeting and the answer to each batch. Raises `PsrtError`.
    """
    inbox = Inbox(scattering, seat.trainers, seat.job_id)
    server = _server(inbox, seat)
    with _telling_failures(tell), _open(server):
        before = scattering.records
        words = _meet(seat, tell, Word(server.endpoint, scattering.digest()))
        check_kinds([word.kind for word in words])
        sent = _send(scattering, seat, inbox, [word.endpoint for word in words])
        has_sent = _meet(seat, tell, Word(before=before, counts=sent))
    has_received = _meet(seat, tell, Word(counts=inbox.counts))
    check(
        [word.before for word in has_sent],
        [word.counts for word in has_sent],
        [word.counts for word in has_received],
    )
    return deque(inbox.take())


def _server(inbox: Inbox, seat: Seat) -> Server:
    """The server of a trainer, for others with its token and certificates of its authority."""
    own = identity()
    if own.tls is not None and not own.tls.settings.cert:
        raise ConfigError(
            "a global shuffle over encrypted connections needs a certificate of each trainer.",
            hint="Set tls_cert and tls_key of [trainer], too.",
        )
    return Server(
        inbox.handle,
        seat.host,
        unix_dir="" if seat.carrier == "stream" else None,
        gate=gate_of(own.token),
        tls=own.tls,
        insecure=own.insecure,
    )


def _meet(seat: Seat, tell: Tell, word: Word) -> list[Word]:
    return words_of(tell(word.note(), seat.timeout_s), seat.trainers)


@contextlib.contextmanager
def _open(server: Server) -> Iterator[None]:
    server.start()
    server.set_serving(True)
    try:
        yield
    finally:
        server.stop(_GRACE_S)


@contextlib.contextmanager
def _telling_failures(tell: Tell) -> Iterator[None]:
    """Report a failure inside to the others, so that they do not wait for this trainer."""
    try:
        yield
    except PsrtError as error:
        with contextlib.suppress(PsrtError):
            tell(Word(failed=error.message).note(), _LAST_WORD_S, waits=False)
        raise


def _send(scattering: Scattering, seat: Seat, inbox: Inbox, endpoints: Sequence[str]) -> list[int]:
    """Send all records; return how many went to each trainer."""
    sent = [0] * seat.trainers
    with _Post(seat, scattering, endpoints) as post:
        for to, records in scattering.deal(seat.trainer, seat.trainers):
            sent[to] += len(records)
            if to == seat.trainer:
                inbox.keep(to, records)
            else:
                post.send(to, records)
        post.wait_for_all()
    return sent


class _Post:
    """One thread and one connection for each other trainer: batches arrive in the order sent."""

    def __init__(self, seat: Seat, scattering: Scattering, endpoints: Sequence[str]) -> None:
        self._seat, self._texts, self._endpoints = seat, scattering.texts, endpoints
        hello = pb.Hello(
            job_id=seat.job_id,
            plan_hash=scattering.digest(),
            trainers=seat.trainers,
            software="psrt",
        )
        incarnation = secrets.randbits(63) | 1
        patience = RetryPolicy(budget_s=min(GIVE_UP_S, seat.timeout_s))
        self._clients = [
            Client(endpoint, seat.trainer, incarnation, seat.carrier, hello, retry=patience)
            for endpoint in endpoints
        ]
        self._crashes = CrashReport()
        self._threads = EndpointThreads(endpoints, "shuffle to", self._crashes)
        self._under_way: deque[tuple[int, Future[None]]] = deque()

    def __enter__(self) -> _Post:
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients:
            client.close()
        self._threads.close()

    def send(self, to: int, records: Records) -> None:
        """Queue a batch; wait while enough is in flight. Raises earlier errors."""
        handing = self._threads.submit(to, partial(self._hand_over, to, records))
        self._under_way.append((to, handing))
        while len(self._under_way) > BATCHES_UNDER_WAY or self._is_first_done():
            self._wait_for_first()

    def wait_for_all(self) -> None:
        while self._under_way:
            self._wait_for_first()

    def _is_first_done(self) -> bool:
        return bool(self._under_way) and self._under_way[0][1].done()

    def _wait_for_first(self) -> None:
        """Wait for the oldest batch: batches of one trainer are sent in order."""
        to, handing = self._under_way.popleft()
        patience_s = self._seat.timeout_s * (BATCHES_UNDER_WAY + 1)
        results([handing], [f"trainer {to}"], "global shuffle: handing over", patience_s)

    def _hand_over(self, to: int, records: Records) -> None:
        client = self._clients[to]
        header = pb.Header(push_key=client.next_push_key())
        tensors = tensors_of(records, self._texts)
        try:
            client.call(
                Method.RECORDS, header=header, tensors=tensors, timeout_s=self._seat.timeout_s
            )
        except PsrtError as error:
            raise from_code(
                error.code,
                f"global shuffle: trainer {self._seat.trainer} could not hand records to trainer "
                f"{to} at {self._endpoints[to]}. {error.message}",
                f"See whether trainer {to} still runs, and the end of its log.",
            ) from error
