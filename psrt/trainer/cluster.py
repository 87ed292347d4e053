"""What one trainer holds of the cluster: the plan, a client per pserver, the communicator.

The training thread owns it. Besides training, which goes through the communicator, trainer 0 asks
the pservers two things at the end: who is still running, and all rows of a table, page by page.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self, cast

from psrt.communicator.factory import make
from psrt.config.schema import TrainerConfig
from psrt.core.errors import ConfigError
from psrt.core.specs import to_json
from psrt.core.types import F32, I64
from psrt.partition.dispatchers import dispatcher_named
from psrt.partition.plan import PartitionPlan, build_plan
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.dialing import Carrier
from psrt.rpc.methods import Method
from psrt.trainer.completion import Members
from psrt.trainer.job import Job

PAGE_ROWS = 1 << 17


class Cluster:
    """Nothing is sent before `communicator.start`; `close` is silent, it completes nothing."""

    def __init__(self, settings: TrainerConfig, job: Job, say: Callable[[str], None]) -> None:
        self._timeout_s = settings.call_timeout_s
        self.plan = plan_of(settings, job)
        self.tables = tuple(spec.name for spec in self.plan.sparse)
        self.clients = clients_of(settings, job, self.plan)
        self.communicator = make(
            job.config.communication,
            self.plan,
            self.clients,
            call_timeout_s=settings.call_timeout_s,
            on_wait=say,
        )

    def members(self) -> Members:
        """The first pserver's view of the job; all pservers hear of the same events."""
        reply = self.clients[0].call(Method.STATUS, timeout_s=self._timeout_s)
        return members_of(reply.header.status_json)

    def rows(self, table: str) -> Iterator[tuple[I64, F32]]:
        """All rows of a sparse table, from every pserver: pages of ids (n,) and rows (n, width)."""
        for client in self.clients:
            yield from self._rows_of(client, table)

    def hurry(self) -> None:
        """This process was asked to end: do not wait long for a pserver that is gone."""
        for client in self.clients:
            client.hurry()

    def close(self) -> None:
        self.communicator.close()
        for client in self.clients:
            client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _rows_of(self, client: Client, table: str) -> Iterator[tuple[I64, F32]]:
        cursor = 0
        while True:
            asked = pb.Export(table=table, cursor=cursor, max_rows=PAGE_ROWS)
            header = pb.Header(export=asked)
            reply = client.call(Method.EXPORT, header=header, timeout_s=self._timeout_s)
            ids, rows = reply.tensors
            yield ids, rows
            cursor = reply.header.export_reply.next_cursor
            if cursor == 0:
                return


def plan_of(settings: TrainerConfig, job: Job) -> PartitionPlan:
    """Where everything lives; every trainer must arrive at the same plan."""
    if not settings.endpoints:
        raise ConfigError(
            "no pservers were named.",
            hint="Give --endpoints host:port,host:port, the same on every trainer.",
        )
    if not job.program.trained():
        raise ConfigError(
            f"the program of job {job.config.name} trains nothing.",
            hint="Give psrt.Model an optimizer.",
        )
    partition = job.config.partition
    return build_plan(
        job.program.parameters.values(),
        settings.endpoints,
        slice_var_up=partition.slice_var_up,
        min_block_size=partition.min_block_size,
        dispatcher=dispatcher_named(partition.split_method),
    )


def clients_of(settings: TrainerConfig, job: Job, plan: PartitionPlan) -> list[Client]:
    """One per pserver, in the order of the plan; one incarnation for all of them."""
    hello = pb.Hello(
        job_id=job.config.name,
        plan_hash=plan.hash(),
        trainers=settings.trainers,
        mode=to_json(job.config.communication),
        software="psrt",
    )
    incarnation = secrets.randbits(63) | 1
    carrier = cast("Carrier", settings.carrier)
    return [
        Client(endpoint, settings.trainer_id, incarnation, carrier, hello)
        for endpoint in plan.endpoints
    ]


def members_of(status_json: str) -> Members:
    """The part of a pserver's STATUS that says who is still there."""
    status = json.loads(status_json)
    states = [str(member["state"]) for member in status["trainers"]]
    return Members(states, status["round"] + status["global_step"])
