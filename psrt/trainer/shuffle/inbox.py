"""The rpc handler that receives and keeps the records of other trainers in a global shuffle.

It answers HELLO, to trainers of the same job whose records are of the same kind, and RECORDS. A
call that is repeated after a lost reply is answered again and stored once. Carriers call
`handle` from any thread.
"""

from __future__ import annotations

import secrets
import threading

from psrt.core.errors import ErrorCode, JobError, WireError
from psrt.data.datasets import Records, Scattering, Shelf, records_of
from psrt.rpc import pb
from psrt.rpc.methods import Method
from psrt.rpc.serving import Peer
from psrt.rpc.wire import Message


class Inbox:
    """Records of one shuffle among `trainers`, by sender, so that their order is deterministic."""

    def __init__(self, scattering: Scattering, trainers: int, job_id: str) -> None:
        self._layout, self._texts = scattering.layout, scattering.texts
        self._kind = (job_id, scattering.digest(), trainers)
        self._incarnation = secrets.randbits(63) | 1
        self._lock = threading.Lock()
        self._shelves = [Shelf(self._layout) for _ in range(trainers)]
        self._senders: dict[int, int] = {}
        self._last = [0] * trainers

    def handle(self, message: Message, peer: Peer) -> Message:
        """Answer a call; raise `PsrtError` for an invalid one."""
        match message.header.method:
            case Method.HELLO:
                return self._greet(message.header)
            case Method.RECORDS:
                return self._store(message)
        raise WireError(
            f"a trainer that shuffles has no method {message.header.method}.",
            code=ErrorCode.WIRE_UNKNOWN_METHOD,
        )

    def keep(self, trainer: int, records: Records) -> None:
        """Store records that this trainer, `trainer`, keeps itself."""
        with self._lock:
            self._shelves[trainer].put(records)

    @property
    def counts(self) -> list[int]:
        """Numbers of records by sender."""
        with self._lock:
            return [shelf.records for shelf in self._shelves]

    def take(self) -> list[Records]:
        """Return all records, by sender and in the order sent."""
        with self._lock:
            return [piece for shelf in self._shelves for piece in shelf.take()]

    def _greet(self, header: pb.Header) -> Message:
        hello, sender = header.hello, header.trainer
        kind = (hello.job_id, hello.plan_hash, hello.trainers)
        if kind != self._kind or sender >= len(self._shelves):
            raise WireError(
                f"trainer {sender} of job {hello.job_id!r} shuffles records of another kind than "
                f"this trainer of job {self._kind[0]!r}; its HELLO was refused.",
                code=ErrorCode.JOB_MISMATCH,
                hint="All trainers need the same slots in the same order, and the same settings.",
            )
        with self._lock:
            self._check_sender(sender, header.push_key.incarnation, is_new=True)
        reply = pb.HelloReply(incarnation=self._incarnation, software="psrt")
        return Message(pb.Header(hello_reply=reply))

    def _store(self, message: Message) -> Message:
        header = message.header
        sender, sequence = header.trainer, header.push_key.sequence
        with self._lock:
            self._check_sender(sender, header.push_key.incarnation, is_new=False)
        records = records_of(self._layout, self._texts, message.tensors)
        with self._lock:
            if sequence > self._last[sender] + 1 or sequence < 1:
                raise WireError(
                    f"trainer {sender} handed over batch {sequence} of records after batch "
                    f"{self._last[sender]}; it was refused.",
                    hint="Batches are sent one after the other, each until it is answered.",
                )
            if sequence == self._last[sender] + 1:
                self._shelves[sender].put(records)
                self._last[sender] = sequence
        return Message(pb.Header())

    def _check_sender(self, sender: int, incarnation: int, is_new: bool) -> None:
        known = self._senders.setdefault(sender, incarnation) if is_new else None
        if self._senders.get(sender) != incarnation or known not in (None, incarnation):
            raise JobError(
                f"trainer {sender} came back as a new process in the middle of a global shuffle; "
                "its records were refused.",
                code=ErrorCode.TRAINER_LOST,
                hint="Start the job again: records of the former process are gone.",
            )
