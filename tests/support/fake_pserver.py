"""A pserver in plain numpy and dictionaries, for tests of everything that talks to one.

It follows the wire contract (register, pull, push, exchange, meet, complete; push keys; 1/T in
rounds; changed rows) with SGD at a constant rate or `Add`, every call under one lock. It serves
every mode at once, decides nothing about lost trainers, keeps no deadlines, and never forgets which
rows were pushed.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field

import numpy as np

from psrt.core import specs
from psrt.core.errors import TableError, UnavailableError
from psrt.kernels.tables import initialize
from psrt.rpc import pb
from psrt.rpc.methods import Method
from psrt.rpc.serving import Later, Peer
from psrt.rpc.wire import PULL_CHANGED, PULL_DENSE, PULL_ROWS, PUSH_DENSE, PUSH_ROWS, Message

PUSHES = (PUSH_DENSE, PUSH_ROWS)
TENSORS_SENT = {PUSH_DENSE: 1, PUSH_ROWS: 2, PULL_DENSE: 0, PULL_ROWS: 1, PULL_CHANGED: 0}
NO_OTHER = (1 << 64) - 1

Part = tuple[pb.Part, list[np.ndarray]]


@dataclass
class DenseTable:
    spec: specs.DenseTableSpec
    version: int = 0
    values: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.values = np.empty(self.spec.size, np.float32)
        initialize.fill_block(self.spec.initializer, self.spec.seed, self.spec.offset, self.values)

    def read(self, tensors: list[np.ndarray]) -> np.ndarray:
        return self.values.copy()

    def apply(self, tensors: list[np.ndarray], scale: float) -> None:
        self.values += factor(self.spec, scale) * tensors[0]


@dataclass
class SparseTable:
    spec: specs.SparseTableSpec
    version: int = 0
    rows: dict[int, np.ndarray] = field(default_factory=dict)
    pushed: list[tuple[int, list[int]]] = field(default_factory=list)  # trainer, ids

    def read(self, tensors: list[np.ndarray]) -> np.ndarray:
        (ids,) = tensors
        out = np.empty((len(ids), self.spec.width), np.float32)
        initialize.fill_rows(self.spec.initializer, self.spec.seed, ids, out)
        for position, row_id in enumerate(ids.tolist()):
            if row_id in self.rows:
                out[position] = self.rows[row_id]
        return out

    def apply(self, tensors: list[np.ndarray], scale: float) -> None:
        ids, gradients = tensors
        after = self.read([ids]) + factor(self.spec, scale) * gradients
        self.rows.update(zip(ids.tolist(), after, strict=True))

    def changed(self, trainer: int, position: int) -> np.ndarray:
        """The ids (n,) that others than `trainer` pushed since `position`, in rising order.

        Positions count pushes from 1; 0 asks for all rows that exist.
        """
        if position == 0:
            return np.array(sorted(self.rows), np.int64)
        pushed = self.pushed[position - 1 :]
        return np.array(sorted({i for by, ids in pushed if by != trainer for i in ids}), np.int64)


def factor(spec: specs.TableSpec, scale: float) -> np.float32:
    """The factor of a pushed value before it is added."""
    if isinstance(spec.optimizer, specs.Add):
        return np.float32(scale)
    return np.float32(-scale * spec.learning_rate.rate)


@dataclass
class Meeting:
    """A MEET that waits."""

    trainer: int
    meet: pb.Meet
    future: Future[None] = field(default_factory=Future)


class FakePserver:
    """The handler of one `InprocServer` or `Server`."""

    def __init__(self, trainers: int) -> None:
        self.lock = threading.Lock()
        self.tables: dict[str, DenseTable | SparseTable] = {}
        self.live = set(range(trainers))
        self.steps = 0
        self.round = 0
        self.versions_pushed: list[tuple[str, int]] = []
        self._applied: set[tuple[int, int, int]] = set()
        self._arrived: dict[int, list[Part]] = {}
        self._waiting: list[Future[None]] = []
        self.clocks: dict[str, dict[int, int]] = {}
        self._meetings: list[Meeting] = []
        self._methods: dict[int, Callable[[Message], Message | Later]] = {
            Method.HELLO: lambda message: Message(pb.Header(hello_reply=pb.HelloReply())),
            Method.ATTEND: lambda message: Message(pb.Header()),
            Method.REGISTER: self._register,
            Method.PULL: lambda message: self._reply(message),
            Method.PUSH: self._push,
            Method.EXCHANGE: self._exchange,
            Method.MEET: self._meet,
            Method.COMPLETE: self._complete,
            Method.STATUS: lambda message: Message(
                pb.Header(status_json=json.dumps(self._status()))
            ),
        }

    def __call__(self, message: Message, peer: Peer) -> Message | Later:
        with self.lock:
            return self._methods[message.header.method](message)

    def end(self) -> None:
        """Fail the calls that wait for other trainers."""
        with self.lock:
            for future in (*self._waiting, *(meeting.future for meeting in self._meetings)):
                if not future.done():
                    future.set_exception(UnavailableError("the fake pserver has ended"))

    def _status(self) -> dict[str, object]:
        rounds = [(0, self.round)]
        return {"round": self.round, "rounds": rounds, "global_step": self.steps}

    def _register(self, message: Message) -> Message:
        for spec in map(specs.from_json, message.header.register.specs):
            kind = SparseTable if isinstance(spec, specs.SparseTableSpec) else DenseTable
            self.tables.setdefault(spec.name, kind(spec))
        return Message(pb.Header())

    def _push(self, message: Message) -> Message:
        if self._is_new(message):
            self.steps += message.header.step
            self._apply(message.header.trainer, parts_of(message), 1.0)
        reply = self._reply(message)
        reply.header.step = self.steps
        return reply

    def _exchange(self, message: Message) -> Later:
        future: Future[None] = Future()
        if self._is_new(message):
            assert message.header.round == self.round, "a trainer is in another round"
            self._arrived[message.header.trainer] = parts_of(message)
            self._waiting.append(future)
            self._close_round()
        else:
            future.set_result(None)
        return Later(future, lambda: self._read_later(message))

    def _read_later(self, message: Message) -> Message:
        with self.lock:
            reply = self._reply(message)
            reply.header.round = message.header.round
            return reply

    def _meet(self, message: Message) -> Later:
        meeting = Meeting(message.header.trainer, message.header.meet)
        clock = self.clocks.setdefault(meeting.meet.clock, {})
        clock[meeting.trainer] = max(clock.get(meeting.trainer, 0), meeting.meet.reached)
        self._meetings.append(meeting)
        self._end_meetings()
        return Later(meeting.future, lambda: self._met(meeting))

    def _met(self, meeting: Meeting) -> Message:
        with self.lock:
            return Message(pb.Header(meet_reply=pb.MeetReply(slowest=self._slowest(meeting))))

    def _slowest(self, meeting: Meeting) -> int:
        clock = self.clocks[meeting.meet.clock]
        others = self.live - {meeting.trainer}
        return min((clock.get(trainer, 0) for trainer in others), default=NO_OTHER)

    def _end_meetings(self) -> None:
        over = [m for m in self._meetings if self._slowest(m) >= m.meet.awaited]
        self._meetings = [meeting for meeting in self._meetings if meeting not in over]
        for meeting in over:
            meeting.future.set_result(None)

    def _complete(self, message: Message) -> Message:
        self.live.discard(message.header.trainer)
        self._close_round()
        self._end_meetings()
        return Message(pb.Header())

    def _close_round(self) -> None:
        if not self._arrived or not self.live <= set(self._arrived):
            return
        for trainer in sorted(self._arrived):
            self._apply(trainer, self._arrived[trainer], 1.0 / len(self._arrived))
        self._arrived.clear()
        self.round += 1
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            future.set_result(None)

    def _apply(self, trainer: int, parts: list[Part], scale: float) -> None:
        for part, tensors in parts:
            if part.kind in PUSHES:
                table = self._table(part)
                table.apply(tensors, scale)
                table.version += 1
                if isinstance(table, SparseTable):
                    table.pushed.append((trainer, tensors[0].tolist()))
                self.versions_pushed.append((part.table, part.version))

    def _reply(self, message: Message) -> Message:
        reply = Message(pb.Header())
        for part, tensors in parts_of(message):
            if part.kind not in PUSHES:
                table = self._table(part)
                told = reply.header.parts.add(
                    kind=part.kind, table=part.table, version=table.version
                )
                if part.kind == PULL_CHANGED and isinstance(table, SparseTable):
                    tensors = [table.changed(message.header.trainer, part.position)]
                    reply.tensors += tensors
                    told.position = len(table.pushed) + 1
                reply.tensors.append(table.read(tensors))
        return reply

    def _table(self, part: pb.Part) -> DenseTable | SparseTable:
        if part.table not in self.tables:
            raise TableError(f"no table {part.table} was registered")
        return self.tables[part.table]

    def _is_new(self, message: Message) -> bool:
        key = message.header.push_key
        identity = (message.header.trainer, key.incarnation, key.sequence)
        is_new = identity not in self._applied
        self._applied.add(identity)
        return is_new


def parts_of(message: Message) -> list[Part]:
    """Each part with its own tensors."""
    tensors = iter(message.tensors)
    return [
        (part, [next(tensors) for _ in range(TENSORS_SENT[part.kind])])
        for part in message.header.parts
    ]
