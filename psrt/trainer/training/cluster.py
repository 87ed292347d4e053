"""One trainer's side of the cluster: the plan, a client per pserver, the communicator.

The training thread owns it. Besides training, which goes through the communicator, trainers meet at
the first pserver, and trainer 0 sends two requests at the end: which trainers still run, and all
rows of a table, page by page. A `TrainerProgram` describes the job; `cluster_of` makes one from a
job file.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, cast

from psrt.communicator.factory import make
from psrt.communicator.geo import LocalParameters
from psrt.communicator.members import Members, members_of
from psrt.communicator.requests import KeptCalls
from psrt.config.sections import BUSY_POLL_US, TrainerConfig
from psrt.core.specs import Collective, text_of, to_json
from psrt.core.types import F32, I64
from psrt.kernels import jit
from psrt.kernels.lowlevel import await_input
from psrt.partition.transpile import program_for
from psrt.partition.transpiler import TrainerProgram
from psrt.rpc import pb
from psrt.rpc.busy_poll import NEVER, BusyPoll
from psrt.rpc.client import Client
from psrt.rpc.dialing import Carrier
from psrt.rpc.methods import ENDS_EARLY, Method
from psrt.trainer.collectives import CollectiveCluster, seat_of
from psrt.trainer.inputs import Job, warm_start_of
from psrt.trainer.training.process import assume_identity_of_variables
from psrt.trainer.training.shrinking import Shrunk, shrink
from psrt.trainer.training.training_run import TrainingRun

PAGE_ROWS = 1 << 17


class ConnectedCluster:
    """Clients and communicator; `start` of the latter sends the first call.

    `own` are the parameters that this trainer trains itself, in Geo. `gives_gradients` is that of
    `psrt.communicator.factory.make`. `close` reports nothing.
    """

    def __init__(
        self,
        part: TrainerProgram,
        *,
        carrier: Carrier = "stream",
        call_timeout_s: float,
        say: Callable[[str], None],
        own: LocalParameters | None = None,
        busy_poll_us: int = BUSY_POLL_US,
        gives_gradients: bool = False,
    ) -> None:
        self._timeout_s = call_timeout_s
        self.plan = part.plan
        self.tables = tuple(spec.name for spec in self.plan.sparse)
        self.clients = clients_of(part, carrier, BusyPoll(busy_poll_us, await_input))
        self._met: Counter[str] = Counter()
        self._kept = KeptCalls(self.plan, self.clients)
        self.communicator = make(
            part.mode,
            self.plan,
            self.clients,
            call_timeout_s=call_timeout_s,
            on_wait=say,
            own=own,
            wire=part.wire,
            retained_bytes=part.retained_bytes,
            kept_calls=self._kept,
            gives_gradients=gives_gradients,
        )

    def members(self) -> Members:
        """Return the first pserver's view of the job; raises the error that ended it."""
        reply = self.clients[0].call(Method.STATUS, timeout_s=self._timeout_s)
        return members_of(reply.header.status_json)

    def rows(self, table: str) -> Iterator[tuple[I64, F32]]:
        """Pages of ids (n,) and rows (n, width): all rows of a sparse table, from every pserver."""
        for client in self.clients:
            yield from self._rows_of(client, table)

    def give(self, values: Mapping[str, F32]) -> None:
        """Let whole dense parameters begin with `values`, unless they were updated already."""
        self._kept.give(values, self._timeout_s)

    def keep(self, values: Mapping[str, F32]) -> None:
        """Give `values` again to pservers that recover; all trainers call it with equal ones,
        before anyone pushes."""
        self._kept.keep(values)

    def shrink(self, tables: Sequence[str], dry_run: bool) -> dict[str, Shrunk]:
        """Drop expired rows of sparse tables on every pserver."""
        return shrink(self.clients, tables, dry_run, self._timeout_s)

    def meet(self, name: str, timeout_s: float) -> None:
        """Wait until every other running trainer has met at `name` as often as this one."""
        self.tell(f"barrier {name}", "", timeout_s)

    def tell(self, name: str, note: str, timeout_s: float, waits: bool = True) -> list[str]:
        """Meet at `name` once more, leave a note; return the notes by trainer, "" for none.

        Waits until all trainers have met as often, unless `waits` is off.
        """
        self._met[name] += 1
        times = self._met[name]
        asked = pb.Meet(clock=name, reached=times, awaited=times if waits else 0, note=note)
        return list(self._kept.meet(asked, timeout_s).notes)

    def end_early(self) -> None:
        """Let the other trainers end, as if they had no more data."""
        self._kept.meet(pb.Meet(clock=ENDS_EARLY, reached=1), self._timeout_s)

    def hurry(self) -> None:
        """Shorten waits for lost pservers: this process was asked to end."""
        for client in self.clients:
            client.hurry()

    def close(self) -> None:
        self.communicator.close()
        for client in self.clients:
            client.close()

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


AnyCluster: TypeAlias = ConnectedCluster | CollectiveCluster
"""The other side of a trainer: pservers, or a group of trainers without any."""


def cluster_of_part(
    part: TrainerProgram,
    run: TrainingRun,
    *,
    carrier: Carrier,
    connect_timeout_s: float,
    call_timeout_s: float,
    say: Callable[[str], None],
) -> AnyCluster:
    """The cluster of a transpiled program; trainers without pservers meet here."""
    if isinstance(part.mode, Collective):
        return CollectiveCluster(
            seat_of(part.trainer_id, part.trainers, part.plan.endpoints, part.device),
            part.mode,
            run.program,
            run.scope,
            run.executor,
            connect_timeout_s=connect_timeout_s,
            call_timeout_s=call_timeout_s,
        )
    own = run.local_parameters(part.mode)
    jit.warm_up(("trainer", "pserver") if own else ("trainer",))
    return ConnectedCluster(part, carrier=carrier, call_timeout_s=call_timeout_s, say=say, own=own)


def cluster_of(
    settings: TrainerConfig,
    job: Job,
    say: Callable[[str], None],
    own: LocalParameters | None = None,
) -> ConnectedCluster:
    """The cluster of a job file."""
    return ConnectedCluster(
        part_of(settings, job),
        carrier=cast("Carrier", settings.carrier),
        call_timeout_s=settings.call_timeout_s,
        say=say,
        own=own,
        busy_poll_us=settings.busy_poll_us,
    )


def part_of(settings: TrainerConfig, job: Job) -> TrainerProgram:
    """Return this trainer's part of a job; every trainer computes the same plan."""
    mode = job.config.communication
    plan, warm_start = job.plan(settings.endpoints), warm_start_of(settings, job.config)
    if warm_start is not None:
        plan = replace(plan, warm_start=to_json(warm_start))
    return TrainerProgram(
        program_for(job.program, mode),
        plan,
        mode,
        settings.trainer_id,
        settings.trainers,
        job.config.name,
        wire=job.config.wire,
        retained_bytes=job.config.retained_bytes,
        durability=job.config.durability,
        run=settings.run,
    )


def clients_of(part: TrainerProgram, carrier: Carrier, busy_poll: BusyPoll = NEVER) -> list[Client]:
    """Make one client per pserver, in the order of the plan, with one incarnation."""
    assume_identity_of_variables()
    hello = pb.Hello(
        job_id=part.job_id,
        plan_hash=part.plan.hash(),
        plan=text_of(part.plan.to_json(), part.program.seed),
        trainers=part.trainers,
        mode=to_json(part.mode),
        software="psrt",
        durability=part.durability if part.retained_bytes else "",
        run=part.run,
    )
    incarnation = secrets.randbits(63) | 1
    return [
        Client(endpoint, part.trainer_id, incarnation, carrier, hello, busy_poll=busy_poll)
        for endpoint in part.plan.endpoints
    ]
