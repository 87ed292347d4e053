"""The places of tables: this process (`local_tables`), or pservers (`ConnectedTables`).

Both compute the same: a backend pulls rows of distinct ids, and makes one update by the gradients
of a step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Protocol

from psrt.communicator.base import ComingRows, Gradients
from psrt.core.errors import ConfigError
from psrt.core.specs import CommunicationMode, Geo
from psrt.core.types import F32, I64
from psrt.graph.program import Program
from psrt.kernels import jit
from psrt.partition.plan import build_plan
from psrt.partition.transpiler import TrainerProgram
from psrt.torch.cuts import ATTEMPTS, RunPosition, make_cut
from psrt.torch.declared import Declared, Dense, Rates
from psrt.torch.here import GeoParameters
from psrt.trainer.training import ConnectedCluster

_FIRST_VALUES, _RUN = "first values", "run"


class Backend(Protocol):
    """Tables and dense parameters by name; belongs to the training thread."""

    mode: CommunicationMode
    trainers: int
    trainer_id: int
    replaces: bool
    """True if a former process of this trainer has trained in the running job; known once open."""

    @property
    def resumed_cut(self) -> int:
        """The cut that the tables began with, 0 = none; known once open."""
        ...

    @property
    def run(self) -> str:
        """The identity of the training, which is that of the resumed one; known once open."""
        ...

    def open(self, declared: Declared, first: Dense) -> Dense:
        """Register what is declared; returns the dense parameters.

        In a job that begins they are those that trainer 0 gave as `first`.
        """
        ...

    def pull(self, wanted: Mapping[str, I64]) -> dict[str, F32]:
        """Rows (n, width) of the distinct ids (n,) of each table; changes nothing."""
        ...

    def begin_with(self, weights: Mapping[str, F32]) -> None:
        """Let tables begin with weights (n, width) for the ids 0 … n − 1; called before `open`."""
        ...

    def rows(self, table: str) -> Iterator[tuple[I64, F32]]:
        """Pages of ids (n,) and rows (n, width): all rows that exist, with all own pushes."""
        ...

    @property
    def brought(self) -> Mapping[str, F32]:
        """Rows that came with the last push."""
        ...

    def expect(self, wanted: Mapping[str, I64]) -> None:
        """Read rows of the distinct ids (n,) of each table right behind the next push."""
        ...

    def read_behind(self, wanted: Mapping[str, I64]) -> ComingRows | None:
        """Ask for rows of the distinct ids (n,) of each table, read behind the next push.

        They may arrive long after `push` has returned. None: nothing was asked for.
        """
        ...

    def push(self, gradients: Gradients, rates: Rates, sums: bool = False) -> Dense:
        """Make one update with the learning rate of each table; returns newer dense parameters.

        A round of Sync adds the gradients of trainers with `sums`, else it takes their mean. An
        empty mapping is a step without a share: it closes a round of Sync.
        """
        ...

    def flush(self) -> Dense:
        """Wait until all pushes are applied; returns the dense parameters."""
        ...

    def tell(self, name: str, note: str, timeout_s: float) -> list[str]:
        """Meet all running trainers at `name` with a note; returns those of all, "" for none."""
        ...

    def make_cut(self, timeout_s: float) -> int:
        """Make a cut with all running trainers; see `psrt.torch.cut_making.make_cut`."""
        ...

    def complete(self) -> Dense:
        """Apply what is queued, report that this trainer is done; returns the last parameters."""
        ...

    def close(self) -> None:
        """Drop connections, whatever their state."""
        ...


class ConnectedTables:
    """Tables on the pservers at `endpoints`, for trainer `trainer_id` of `trainers`."""

    def __init__(
        self,
        endpoints: tuple[str, ...],
        mode: CommunicationMode,
        trainer_id: int,
        trainers: int,
        job_id: str,
        timeout_s: float,
        warm_start: str = "",
        durability: str = "none",
        retained_bytes: int = 0,
    ) -> None:
        self._warm_start = warm_start
        self._durability, self._retained_bytes = durability, retained_bytes
        self._endpoints, self.mode, self.trainers = endpoints, mode, trainers
        self.trainer_id, self._job_id, self._timeout_s = trainer_id, job_id, timeout_s
        self._cluster: ConnectedCluster | None = None
        self.brought: Mapping[str, F32] = {}
        self._own: GeoParameters | None = None
        self._position = RunPosition()
        self.replaces = False

    def open(self, declared: Declared, first: Dense) -> Dense:
        if isinstance(self.mode, Geo):
            self._own = GeoParameters(declared)
        jit.warm_up(("trainer", "pserver") if self._own else ("trainer",))
        plan = build_plan(declared, self._endpoints, mode=self.mode)
        plan = replace(plan, warm_start=self._warm_start)
        numbers = self.trainer_id, self.trainers
        part = TrainerProgram(
            *(Program(), plan, self.mode, *numbers, self._job_id),
            retained_bytes=self._retained_bytes,
            durability=self._durability,
        )
        timeout_s, own = self._timeout_s, self._own
        cluster = ConnectedCluster(
            part, call_timeout_s=timeout_s, say=print, own=own, gives_gradients=True
        )
        self._cluster, communicator = cluster, cluster.communicator
        communicator.begins_at(self._position.begin)
        dense = communicator.start(timeout_s)
        self.replaces = communicator.resumed.replaces and cluster.members().updates > 0
        if own is not None:
            own.begin(dense)
        if communicator.makes_cuts:
            self._agree_on_run(cluster)
        if not first or self.resumed_cut:
            return dense
        return self._begin_with(first, cluster)

    def pull(self, wanted: Mapping[str, I64]) -> dict[str, F32]:
        return self._opened.communicator.pull_rows(wanted)

    def begin_with(self, weights: Mapping[str, F32]) -> None:
        if not self._warm_start:
            raise ConfigError(
                f"weights of {', '.join(weights)} are in this process, and tables on pservers; "
                "nothing was sent.",
                hint="Write them to a directory that pservers can read, by pt.save_tables, and "
                "begin with it: pt.connect(warm_start=DIR).",
            )

    def rows(self, table: str) -> Iterator[tuple[I64, F32]]:
        self._opened.communicator.flush(self._timeout_s)
        return self._opened.rows(table)

    def expect(self, wanted: Mapping[str, I64]) -> None:
        if wanted:
            self._opened.communicator.begin(wanted)

    def read_behind(self, wanted: Mapping[str, I64]) -> ComingRows | None:
        return self._opened.communicator.read_behind(wanted)

    def push(self, gradients: Gradients, rates: Rates, sums: bool = False) -> Dense:
        communicator, own = self._opened.communicator, self._own
        if rates:  # a skipped step has none, and pushes of steps before it may wait in a queue
            communicator.use_rates(rates, sums)
        if communicator.makes_cuts:
            communicator.continues_at(self._position.after_step())
        pulled = communicator.finish(gradients if own is None else own.apply(gradients, rates))
        self.brought = pulled.rows
        return pulled.dense if own is None else own.all_dense()

    def flush(self) -> Dense:
        return self._opened.communicator.flush(self._timeout_s)

    @property
    def resumed_cut(self) -> int:
        return self._position.found.cut

    @property
    def run(self) -> str:
        return self._position.run

    def tell(self, name: str, note: str, timeout_s: float) -> list[str]:
        return self._opened.tell(name, note, timeout_s)

    def make_cut(self, timeout_s: float) -> int:
        attempts = ATTEMPTS if self._retained_bytes else 1
        return make_cut(self._opened, self.mode, self.trainer_id, timeout_s, attempts)

    def complete(self) -> Dense:
        return self._opened.communicator.stop(self._timeout_s)

    def close(self) -> None:
        if self._cluster is not None:
            self._cluster.close()

    def _begin_with(self, first: Dense, cluster: ConnectedCluster) -> Dense:
        """Let dense parameters begin with `first` of trainer 0; returns them.

        All trainers keep them before anyone pushes, for pservers that recover.
        """
        if self.trainer_id == 0:
            cluster.give(first)
        self._meet_for_values(cluster)
        dense = cluster.communicator.flush(self._timeout_s)
        if self._retained_bytes:
            cluster.keep(dense)
        self._meet_for_values(cluster)
        return dense

    def _meet_for_values(self, cluster: ConnectedCluster) -> None:
        with cluster.communicator.at_rest():  # a cut may be made meanwhile
            cluster.meet(_FIRST_VALUES, self._timeout_s)

    def _agree_on_run(self, cluster: ConnectedCluster) -> None:
        """Take the identity of the resumed training, or that of the first trainer of a new one."""
        if not (run := self._position.resumed_run):
            run = next(filter(None, cluster.tell(_RUN, self.run, self._timeout_s)))
        self._position.belong_to(run)

    @property
    def _opened(self) -> ConnectedCluster:
        assert self._cluster is not None, "tables are used before they are opened"
        return self._cluster
