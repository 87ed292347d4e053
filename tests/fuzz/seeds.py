"""Valid frames of every call, from which mutated ones are made."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from psrt.core import specs
from psrt.data.datasets.records import Layout
from psrt.data.datasets.scattering import Scattering, tensors_of
from psrt.rpc import pb
from psrt.rpc.methods import Method
from psrt.rpc.wire import PULL_CHANGED, PULL_DENSE, PULL_ROWS, PUSH_DENSE, PUSH_ROWS
from psrt.rpc.wire.frames import Message, encode
from psrt.rpc.wire.preamble import PREAMBLE_BYTES
from tests.support.pserver import TABLE
from tests.support.records import RAGGED, pieces_of

GOLDEN = Path(__file__).parents[1] / "golden"
JOB, PLAN, TRAINERS = "fuzz", "plan", 2
WIDTH = 4
ROWS = specs.SparseTableSpec(
    "emb", WIDTH, specs.Constant(0.0), specs.Sgd(), specs.ConstantRate(0.5), 1
)
LAYOUT = Layout(RAGGED)
HELLO = pb.Hello(job_id=JOB, plan_hash=PLAN, trainers=TRAINERS, mode=specs.to_json(specs.Async()))
REGISTER = pb.Register(specs=[specs.to_json(TABLE), specs.to_json(ROWS)])
_IDS, _GRADIENTS = np.arange(8), np.ones((8, WIDTH), np.float32)


def calls() -> list[Message]:
    """One valid call of each method."""
    made = [_call(method) for method in Method]
    made += [
        *joining(),
        _call(Method.PULL, parts=[_part(PULL_DENSE, "w"), _part(PULL_ROWS, "emb")]),
        _call(Method.PULL, parts=[_part(PULL_CHANGED, "emb")]),
        _call(Method.MEET, meet=pb.Meet(clock="c", reached=1)),
        _call(Method.EXPORT, export=pb.Export(table="emb", max_rows=10)),
        _call(Method.OPEN, access=pb.Access(token="t", nonce=bytes(32), proof=bytes(32))),
        _call(Method.KEEP_STATE, cut=pb.Cut(number=1)),
    ]
    made[-6].tensors.append(_IDS)
    for method in (Method.PUSH, Method.EXCHANGE):
        parts = [_part(PUSH_DENSE, "w"), _part(PUSH_ROWS, "emb"), _part(PULL_ROWS, "emb")]
        push = _call(method, parts=parts)
        push.tensors = [np.ones(4, np.float32), _IDS, _GRADIENTS, _IDS]
        made.append(push)
    return made


def joining() -> list[Message]:
    """The calls by which a trainer joins."""
    return [_call(Method.HELLO, hello=HELLO), _call(Method.REGISTER, register=REGISTER)]


def shuffled() -> list[Message]:
    """The calls of a global shuffle among `TRAINERS`."""
    hello = pb.Hello(job_id=JOB, plan_hash=nothing().digest(), trainers=TRAINERS)
    records = _call(Method.RECORDS)
    records.tensors = list(tensors_of(pieces_of(LAYOUT, [3], 1)[0], ()))
    return [_call(Method.HELLO, hello=hello), records]


def nothing() -> Scattering:
    """A trainer's records before a shuffle: none."""
    return Scattering(LAYOUT, pieces_of(LAYOUT, [], 1))


def frames() -> list[bytes]:
    """Encoded frames without preambles: of the calls above, and the golden ones."""
    golden = [bytes.fromhex(path.read_text()) for path in sorted(GOLDEN.glob("frames_*.hex"))]
    own = [b"".join(encode(message)) for message in [*calls(), *shuffled()]]
    return own + [each[PREAMBLE_BYTES:] if each[:4] == b"PSRT" else each for each in golden]


def _call(method: Method, **fields: object) -> Message:
    key = pb.PushKey(incarnation=1001, sequence=1)
    header = pb.Header(protocol=1, method=int(method), request_id=1, push_key=key)
    for name, value in fields.items():
        if isinstance(value, list):
            getattr(header, name).extend(value)
        else:
            getattr(header, name).CopyFrom(value)
    return Message(header)


def _part(kind: int, table: str) -> pb.Part:
    return pb.Part(kind=kind, table=table)
