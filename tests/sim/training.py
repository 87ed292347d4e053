"""Training of one trainer process: steps whose pushes the ledger counts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from psrt.communicator.base import Beginning, Communicator, Position, Pulled
from psrt.communicator.factory import make
from psrt.core import specs
from psrt.core.errors import PsrtError
from psrt.rpc import pb
from psrt.rpc.client import Client
from tests.sim.cuts import position_of
from tests.sim.ledger import PLAN, UNIT, gradients_of, ids_of, row_of
from tests.sim.promises import Violation
from tests.support.geo import GeoByHand, OwnByHand

if TYPE_CHECKING:
    from tests.sim.cluster import SimCluster

CALL_TIMEOUT_S, START_TIMEOUT_S, STOP_S = 20.0, 20.0, 10.0
RETAINED_BYTES = 4000
"""Memory for retained pushes: that of some steps, so that trainers ask for cuts."""
MOST_STARTS = 4
STEP_S = 0.01


class JobHasEndedError(Exception):
    """The job ended while a process joined in a trainer's place: it would begin another one."""


class WasInterruptedError(Exception):
    """The process was asked to end, and has left."""


def train(cluster: SimCluster, number: int, process: int) -> None:
    """Train all steps that no former process has; raises the error that ends this one.

    `JobHasEndedError` in a process that pservers do not tell apart from one of another job.

    Only in Geo each process begins anew, and has rows of its own.
    """
    communicator, clients = _connected(cluster, number, process)
    first = process if cluster.is_geo else 0
    steps = range(cluster.scenario.steps[number])
    sent: list[int] = []

    def begin(found: Beginning) -> Position:
        nonlocal steps
        if process and cluster.has_job_ended():
            raise JobHasEndedError
        steps = range(int(found.reached or 0), steps.stop)
        sent.extend(row_of(number, first, step) for step in range(steps.start))
        communicator.marks(str(steps.start))
        cluster.world.note(f"trainer {number}, process {process} begins at step {steps.start}")
        return partial(position_of, first, steps.start)

    communicator.begins_at(begin)
    try:
        communicator.start(START_TIMEOUT_S)
        communicator.pull_rows({"emb": ids_of(number, first, steps.start)})
        for step in steps:
            row = row_of(number, first, step)
            communicator.begin({"emb": ids_of(number, first, step + 1)})
            cluster.world.sleep(cluster.world.random.uniform(0, STEP_S))
            cluster.ledger.sent.add(row)
            sent.append(row)
            communicator.continues_at(partial(position_of, first, step + 1))
            communicator.marks(str(step + 1))
            pulled = communicator.finish(gradients_of(number, first, step))
            _check_staleness(cluster, number, step, pulled)
            if isinstance(cluster.mode, specs.Sync):
                cluster.ledger.acknowledged.add(row)
            if process in cluster.trainers[number].asked:
                _leave(communicator, clients)
        _complete(cluster, number, communicator, sent)
    finally:
        communicator.close()
        for client in clients:
            client.close()


def _complete(
    cluster: SimCluster, number: int, communicator: Communicator, sent: Sequence[int]
) -> None:
    """Stop as a trainer does that has trained all its steps; all it has `sent` is acknowledged."""
    communicator.flush(CALL_TIMEOUT_S)
    cluster.ledger.acknowledged.update(sent)
    if cluster.scenario.ends_with_cut:
        communicator.declare_trained()
    cluster.stops(number)
    dense = communicator.stop(CALL_TIMEOUT_S)
    if isinstance(communicator, GeoByHand):
        cluster.replicas.append((dense, communicator.own))


def _leave(communicator: Communicator, clients: Sequence[Client]) -> None:
    """Leave as a trainer does that was asked to end; raises `WasInterruptedError`."""
    for client in clients:
        client.hurry()
    with suppress(PsrtError):  # it ends all the same
        communicator.stop(STOP_S, interrupted=True)
    raise WasInterruptedError


def _check_staleness(cluster: SimCluster, number: int, step: int, pulled: Pulled) -> None:
    """In Ssp the rows of the next step contain the steps that others had to reach.

    A trainer that the pservers have given up is awaited no more.
    """
    scenario = cluster.scenario
    if not isinstance(cluster.mode, specs.Ssp) or scenario.strikes or not scenario.is_gentle:
        return
    awaited = max(0, step + 1 - cluster.mode.max_steps_ahead)
    others = [min(awaited, n) for t, n in enumerate(cluster.scenario.steps) if t != number]
    held, least = pulled.rows["emb"][0, 0], UNIT * sum(others)
    if held < least:
        raise Violation(f"step {step + 1} of trainer {number} reads {held}, not {least} or more")


def _connected(cluster: SimCluster, number: int, first: int):
    process = cluster.trainers[number].process
    hello = pb.Hello(
        job_id="simulated",
        plan_hash=cluster.plan.hash(),
        trainers=len(cluster.trainers),
        mode=specs.to_json(cluster.mode),
        durability=cluster.scenario.durability,
    )
    dial = cluster.network.dial(process)
    incarnation = 1 + number * MOST_STARTS + first
    clients = [Client(e, number, incarnation, dial, hello) for e in PLAN.endpoints]
    own = OwnByHand(PLAN.sparse[0]) if cluster.is_geo else None
    made = make(
        *(cluster.mode, cluster.plan, clients),
        call_timeout_s=CALL_TIMEOUT_S,
        own=own,
        retained_bytes=RETAINED_BYTES if cluster.scenario.is_durable else 0,
    )
    return made if own is None else GeoByHand(made, own), clients
