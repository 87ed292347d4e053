"""A job whose parameters count pushes, and the trainer's process that runs it.

SGD with rate 1 turns every push into a sum. Step s of a trainer's process pushes `UNIT` to the
first column of a row of its own and of a row that all share, and to each value of `w`; what it
pushes to the other columns and to `noise` are random numbers of (trainer, step), whose sums show
every change of an order. `Ledger` of the simulator says what tables hold in the end.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from psrt.communicator.base import Communicator, Gradients
from psrt.communicator.factory import make
from psrt.core import specs
from psrt.core.errors import PsrtError
from psrt.core.tensors import SelectedRows
from psrt.partition.plan import PartitionPlan, PlacedBlock
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.dialing import Carrier
from psrt.rpc.retry import RetryPolicy
from tests.faults.doors import through_doors
from tests.sim.ledger import UNIT, ids_of
from tests.support.geo import GeoByHand, OwnByHand, with_add

MODES: dict[str, specs.CommunicationMode] = {
    "sync": specs.Sync(on_trainer_loss="wait"),
    "sync-shrink": specs.Sync(on_trainer_loss="shrink"),
    "sync-abort": specs.Sync(on_trainer_loss="abort"),
    "async": specs.Async(send_wait_times=0),
    "async-merging": specs.Async(max_merge_var_num=3, send_queue_size=3, thread_pool_size=2),
    "ssp": specs.Ssp(max_steps_ahead=1),
    "half_async": specs.HalfAsync(),
    "geo": specs.Geo(update_frequency=5),
}
CALL_S, START_S, RETRY_S = 16.0, 40.0, 10.0
"""Time limits of calls and of the start, and the time for repetitions of a call."""

DURABLE_HELLO: dict[str, str] = {"durability": "cut"}
DURABLE_COMMUNICATOR: dict[str, int] = {"retained_bytes": 1 << 26}
"""Further facts for HELLO and `make` in jobs whose pservers may be killed and recovered."""

WIDTH, NOISE = 3, 5
SMALL, LARGE = 6, 30_000
"""Elements of `w`: frames of some hundred bytes, or payloads for shared memory."""

Report = Callable[..., None]


@dataclass(frozen=True)
class TrainerJob:
    """The task of one process of a trainer: `steps` steps that take `pace_s` each.

    `process` numbers the processes that have played trainer `number`. Connections go through the
    doors of the file `doors`.
    """

    number: int
    process: int
    trainers: int
    mode: str
    carrier: str
    endpoints: tuple[str, ...]
    doors: str
    steps: int
    pace_s: float
    elements: int
    is_durable: bool = False


def plan_of(endpoints: tuple[str, ...], elements: int, mode: str) -> PartitionPlan:
    """`w` in a block on each pserver, `noise` on the last one, and the table `emb` on all."""
    rule = {"optimizer": specs.Sgd(), "learning_rate": specs.ConstantRate(1.0)}
    zero, random_ = specs.Constant(0.0), specs.Uniform(-0.5, 0.5)
    ends = [elements * i // len(endpoints) for i in range(len(endpoints) + 1)]
    blocks = [
        specs.DenseTableSpec(
            f"w.block{i}", "w", (elements,), begin, end - begin, zero, seed=1, **rule
        )
        for i, (begin, end) in enumerate(pairwise(ends))
    ]
    placed = [PlacedBlock(e, spec) for e, spec in zip(endpoints, blocks, strict=True)]
    noise = specs.DenseTableSpec("noise", "noise", (NOISE,), 0, NOISE, random_, seed=2, **rule)
    placed.append(PlacedBlock(endpoints[-1], noise))
    emb = specs.SparseTableSpec("emb", WIDTH, zero, seed=3, **rule)
    plan = PartitionPlan(endpoints, tuple(placed), (emb,))
    return with_add(plan) if isinstance(MODES[mode], specs.Geo) else plan


def gradients_of(trainer: int, process: int, step: int, elements: int) -> Gradients:
    """The gradients of a step; only the id of its own row depends on the process."""
    noise = np.random.default_rng((trainer, step))
    rows = noise.standard_normal((2, WIDTH)).astype(np.float32)
    rows[:, 0] = -UNIT
    return {
        "w": np.full(elements, -UNIT, np.float32),
        "noise": noise.standard_normal(NOISE).astype(np.float32),
        "emb": SelectedRows(ids_of(trainer, process, step), rows, unique=True),
    }


def position_of(process: int, steps: int) -> str:
    """The position of a trainer's process after so many steps of the job."""
    return f"{process}:{steps}"


def steps_of(position: str) -> int:
    """The steps of the job before a position, or -1 for a trainer that had completed."""
    return -1 if position == "completed" else int((position or "0:0").split(":")[1])


def train(job: TrainerJob, report: Report) -> None:
    """Run a trainer to its end; `report` gets every event with its facts."""
    plan = plan_of(job.endpoints, job.elements, job.mode)
    incarnation = random.SystemRandom().getrandbits(62) | 1
    clients = [_client(job, plan, endpoint, incarnation) for endpoint in job.endpoints]
    mode, table = MODES[job.mode], plan_of(job.endpoints, job.elements, "sync").sparse[0]
    own = OwnByHand(table) if isinstance(mode, specs.Geo) else None
    extra = DURABLE_COMMUNICATOR if job.is_durable else {}
    made: Communicator = make(mode, plan, clients, call_timeout_s=CALL_S, own=own, **extra)
    try:
        run_steps(job, GeoByHand(made, own) if own is not None else made, made, report)
        report("end", "completed", "")
    except PsrtError as error:
        report("end", error.code.name, error.message)
    finally:
        made.close()
        for client in clients:
            client.close()


def run_steps(job: TrainerJob, trainer: Any, made: Communicator, report: Report) -> None:
    """All steps of a trainer, from the position of the cut that its job began with."""
    trainer.start(START_S)
    first = steps_of(made.resumed.position)
    report("began", made.resumed.cut, first)
    steps = range(first, job.steps) if first >= 0 else range(0)
    ends_with_answer = isinstance(MODES[job.mode], specs.Sync | specs.HalfAsync)
    pace = random.Random(job.number)
    for step in steps:
        if step == first:
            trainer.pull_rows({"emb": ids_of(job.number, job.process, step)})
        trainer.begin({"emb": ids_of(job.number, job.process, step + 1)})
        _compute(job.pace_s * pace.uniform(0.5, 1.5))
        report("sent", step)
        _continue_at(made, position_of(job.process, step + 1))
        trainer.finish(gradients_of(job.number, job.process, step, job.elements))
        if ends_with_answer:
            report("acknowledged", step)
    if job.mode != "geo":
        trainer.flush(CALL_S)
        report("all acknowledged")
    trainer.stop(CALL_S)
    report("all acknowledged")


def _continue_at(made: Communicator, position: str) -> None:
    made.continues_at(lambda: position)


def _compute(for_s: float) -> None:
    """Let the time of a step pass: the pace is the load of a round, and nothing waits for it."""
    time.sleep(for_s)


def _client(job: TrainerJob, plan: PartitionPlan, endpoint: str, incarnation: int) -> Client:
    mode = specs.to_json(MODES[job.mode])
    hello = pb.Hello(job_id="faults", plan_hash=plan.hash(), trainers=job.trainers, mode=mode)
    for name, value in (DURABLE_HELLO if job.is_durable else {}).items():
        setattr(hello, name, value)
    kind: Carrier = "grpc" if job.carrier == "grpc" else "stream"
    retry = RetryPolicy(budget_s=RETRY_S)
    client = Client(endpoint, job.number, incarnation, kind, hello, retry=retry)
    return through_doors(client, job.doors) if job.doors else client
