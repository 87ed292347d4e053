"""Trainers that train lists of steps, which are dealt again when their number changes.

In Geo a process that takes the place of a killed one begins its list anew.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from psrt.communicator.base import Beginning, Communicator, Position
from psrt.communicator.factory import make
from psrt.core import specs
from psrt.core.errors import PsrtError
from psrt.rpc import pb
from psrt.rpc.client import Client
from tests.sim.cluster import SimCluster
from tests.sim.dealt_steps import Steps, all_steps, left_to, share_of
from tests.sim.ledger import PLAN, gradients_of, ids_of, row_of
from tests.sim.training import (
    CALL_TIMEOUT_S,
    RETAINED_BYTES,
    START_TIMEOUT_S,
    STEP_S,
    JobHasEndedError,
)
from tests.support.geo import GeoByHand, OwnByHand

LATER = 9
"""Number of a process whose rows are never trained."""


class DealtCluster(SimCluster):
    """A cluster of such trainers; `processes` counts them over the whole history."""

    processes = 0

    def _train_as(self, number: int, trainers: int, is_successor: bool = False) -> int:
        """Train as one of `trainers`; returns the number with which the job goes on before the end,
        0 = it ended."""
        communicator, clients = self._connected(number, trainers)
        if not self.is_geo:  # its number of trainers stays
            communicator.follow_resizes()
        try:
            self._train_all(communicator, number, trainers, is_successor)
        except PsrtError:
            resized = 0 if self.is_geo else communicator.resized_to
            if not resized:
                raise
            self.world.note(f"trainer {number} of {trainers}: there are {resized} now")
            return resized
        finally:
            communicator.close()
            for client in clients:
                client.close()
        return 0

    def _train_all(
        self, communicator: Communicator, number: int, trainers: int, is_successor: bool
    ) -> None:
        todo: Steps = []
        begun = 0

        def begin(found: Beginning) -> Position:
            nonlocal begun
            if is_successor and self.has_job_ended():
                raise JobHasEndedError
            begun = int(found.reached or 0)
            todo[:] = self._dealt(found, number, trainers)
            if is_successor:
                self.succeeds(todo)
            communicator.marks(str(begun))
            self.world.note(
                f"trainer {number} of {trainers} begins with cut {found.cut}: step {begun} of "
                f"{len(todo)}"
            )
            return partial(json.dumps, todo[begun:])

        communicator.begins_at(begin)
        communicator.start(START_TIMEOUT_S)
        communicator.pull_rows({"emb": _ids_at(todo, begun)})
        for done, (owner, step) in enumerate(todo[begun:], begun + 1):
            communicator.begin({"emb": _ids_at(todo, done)})
            self.world.sleep(self.world.random.uniform(0, STEP_S))
            self.ledger.sent.add(row_of(owner, 0, step))
            communicator.continues_at(partial(json.dumps, todo[done:]))
            communicator.marks(str(done))
            communicator.finish(gradients_of(owner, 0, step))
        communicator.flush(CALL_TIMEOUT_S)
        if self.scenario.ends_with_cut:
            communicator.declare_trained()
        self.stops(number)
        communicator.stop(CALL_TIMEOUT_S)

    def succeeds(self, todo: Steps) -> None:
        """Record the steps of a process that takes the place of another one."""

    def _dealt(self, found: Beginning, number: int, trainers: int) -> Steps:
        """The steps of a trainer: its share of all, or what a cut has left to it."""
        whole = all_steps(self.scenario.steps)
        if found.positions:
            return share_of(found.positions, number, trainers, whole)
        return left_to(found.position, number, trainers, whole)

    def _connected(self, number: int, trainers: int) -> tuple[Communicator, list[Client]]:
        self.processes += 1
        hello = pb.Hello(
            job_id="simulated",
            plan_hash=self.plan.hash(),
            trainers=trainers,
            mode=specs.to_json(self.mode),
            durability=self.scenario.durability,
        )
        dial = self.network.dial(self.trainers[number].process)
        clients = [Client(e, number, self.processes, dial, hello) for e in self.plan.endpoints]
        own = OwnByHand(PLAN.sparse[0]) if self.is_geo else None
        made = make(
            *(self.mode, self.plan, clients),
            call_timeout_s=CALL_TIMEOUT_S,
            own=own,
            retained_bytes=RETAINED_BYTES if self.scenario.is_durable else 0,
        )
        return made if own is None else GeoByHand(made, own), clients


def _ids_at(todo: Steps, index: int) -> Any:
    """The ids of a step of a list; behind its end, of one that is never trained."""
    owner, step = todo[index] if index < len(todo) else (LATER, 0)
    return ids_of(owner, 0 if index < len(todo) else LATER, step)
