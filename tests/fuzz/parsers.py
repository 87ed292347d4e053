"""Mutated frames inside one process: parsers and handlers that bytes of strangers reach.

A target gets the bytes of a frame, and returns an outcome: what was understood, or the refusal. An
exception that is not of psrt, and an answer INTERNAL, are defects. So is a frame that keeps the
processor for longer than SLOW_S. Bytes with a new outcome join the corpus.
"""

from __future__ import annotations

import random
import re
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from psrt.core.errors import ErrorCode, PsrtError
from psrt.pserver.serving.service import PserverService
from psrt.rpc import pb
from psrt.rpc.access import EVERYBODY, Gate, Token, gate_of
from psrt.rpc.serving import Handler, Later, Peer, begin
from psrt.rpc.shm import SharedMemory
from psrt.rpc.wire import Joiner, Message, decode, parse_preamble
from psrt.rpc.wire.frames import decode_apart
from psrt.rpc.wire.preamble import PREAMBLE_BYTES
from psrt.trainer.shuffle.inbox import Inbox
from tests.fuzz.mutate import mutated
from tests.fuzz.seeds import JOB, TRAINERS, frames, joining, nothing

SLOW_S = 2.0
FRAMES_OF_A_SERVICE = 1_000
MOST_CORPUS = 4_096
MUTATED_SHARE = 0.95
"""The others are repeated as they are, because a call may mean something else the second time."""
TABLE_BYTES = 64 << 20
"""Limit of the tables of the fuzzed pserver, which would else take what a frame asks for."""

_PAYLOAD = bytes(1 << 12)
_NUMBER = re.compile(r"[0-9a-f]{8,}|[0-9]+|'[^']*'")


@dataclass
class Tally:
    """Frames by target, and the defects found: a text with the bytes that repeat each."""

    frames: dict[str, int] = field(default_factory=dict)
    outcomes: set[str] = field(default_factory=set)
    defects: list[str] = field(default_factory=list)
    slowest_s: float = 0.0


class Targets:
    """The targets by name; the pserver behind `call` is made anew now and then."""

    def __init__(self) -> None:
        self._calls = 0
        self._peer = Peer("fuzz", "here", grant=EVERYBODY)
        self.by_name: dict[str, Callable[[bytes], str]] = {
            "preamble": _preamble,
            "frame": _frame,
            "pieces": _pieces,
            "apart": _apart,
            "call": self._call,
            "open": partial(_answered, _gated(gate_of(Token("t", bytes(32), "train")))),
            "shuffle": self._shuffle,
        }

    def close(self) -> None:
        if "_service" in self.__dict__:
            self._service.stop()
        for name in ("_service", "_inbox"):
            self.__dict__.pop(name, None)

    @cached_property
    def _service(self) -> PserverService:
        """A pserver that a trainer has joined."""
        service = PserverService(stripes=1, wait_timeout_s=1e6, table_bytes=TABLE_BYTES)
        for message in joining():
            begin(service.handle, message, self._peer)
        return service

    @cached_property
    def _inbox(self) -> Inbox:
        return Inbox(nothing(), TRAINERS, JOB)

    def _call(self, frame: bytes) -> str:
        self._count()
        return _answered(self._service.handle, frame, self._peer)

    def _shuffle(self, frame: bytes) -> str:
        self._count()
        return _answered(self._inbox.handle, frame, self._peer)

    def _count(self) -> None:
        self._calls += 1
        if self._calls % FRAMES_OF_A_SERVICE == 0:
            self.close()


def _preamble(frame: bytes) -> str:
    return f"flags {parse_preamble(frame[:PREAMBLE_BYTES].ljust(PREAMBLE_BYTES, b'P')).flags}"


def _frame(frame: bytes) -> str:
    message = decode(frame)
    return f"{len(message.tensors)} tensors of method {message.header.method}"


def _pieces(frame: bytes) -> str:
    joiner = Joiner(1 << 20)
    for start in (0, len(frame) // 2):
        joiner.add(frame[start:])
    return f"joined {len(joiner.message().tensors)}"


def _apart(frame: bytes) -> str:
    flags = int.from_bytes(frame[:2], "little")
    array = np.frombuffer(frame, np.uint8)
    if flags & 2:
        return f"shared {len(SharedMemory(1 << 20).decoder(flags)(array).tensors)}"
    payload = memoryview(_PAYLOAD)
    return f"apart {len(decode_apart(array, lambda size: payload[:size]).tensors)}"


def _gated(gate: Gate) -> Handler:
    def answer(request: Message, peer: Peer) -> Message:
        return Message(pb.Header(access=gate.answer(request.header.access, 0.0)[0]))

    return answer


def _answered(handler: Handler, frame: bytes, peer: Peer | None = None) -> str:
    """The outcome of a call; one that waits is left alone."""
    request = decode(frame)
    request.reply_limit = 1 << 20
    reply = begin(handler, request, peer or Peer("fuzz", "here"))
    if isinstance(reply, Later):
        return f"waits: method {request.header.method}"
    error = reply.header.error
    if error.code == ErrorCode.INTERNAL:
        raise AssertionError(f"the pserver answered: {error.message}")
    return f"answered {request.header.method}: {error.code} {error.message}"


def run(target: Callable[[bytes], str], frame: bytes) -> tuple[str, str]:
    """The outcome of one frame, and the traceback of a defect, "" = none."""
    try:
        outcome = target(frame)
    except PsrtError as error:
        outcome = f"{int(error.code)} {error.message}"
        if error.code == ErrorCode.INTERNAL:
            return outcome, traceback.format_exc()
    except Exception:
        return "defect", traceback.format_exc()
    return _NUMBER.sub("#", outcome)[:80], ""


class Fuzzer:
    """Frames drawn by `seed` against the targets; `tally` has what happened."""

    def __init__(self, seed: int, only: Sequence[str] = ()) -> None:
        self._draw = random.Random(seed)
        self._targets = Targets()
        self._names = list(only or self._targets.by_name)
        self._corpus = frames()
        self.tally = Tally()

    def run(self, count: int) -> None:
        for _ in range(count):
            name = self._draw.choice(self._names)
            frame = self._draw.choice(self._corpus)
            if self._draw.random() < MUTATED_SHARE:
                frame = mutated(frame, self._draw, self._corpus)
            self._one(name, frame)

    def close(self) -> None:
        self._targets.close()

    def _one(self, name: str, frame: bytes) -> None:
        tally, began = self.tally, time.thread_time()
        outcome, defect = run(self._targets.by_name[name], frame)
        took_s = time.thread_time() - began
        tally.frames[name] = tally.frames.get(name, 0) + 1
        tally.slowest_s = max(tally.slowest_s, took_s)
        if took_s > SLOW_S:
            defect = f"it took {took_s:.1f} s of the processor"
        if defect:
            tally.defects.append(f"{name} {frame.hex()}\n{defect}")
        elif f"{name} {outcome}" not in tally.outcomes:
            tally.outcomes.add(f"{name} {outcome}")
            self._keep(frame)

    def _keep(self, frame: bytes) -> None:
        """Add a frame with a new outcome, in the place of an older one if there are many."""
        if len(self._corpus) < MOST_CORPUS:
            self._corpus.append(frame)
        else:
            self._corpus[self._draw.randrange(len(frames()), MOST_CORPUS)] = frame
