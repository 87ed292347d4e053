"""Calls of a connected executor between two steps: rows, evictions, meetings, global shuffles."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from functools import partial

from psrt.core.types import F32, I64
from psrt.data.datasets import Records, Scattering
from psrt.partition.transpiler import TrainerProgram
from psrt.rpc.dialing import Carrier
from psrt.trainer.shuffle import Seat, exchange, total_of
from psrt.trainer.training.cluster import AnyCluster
from psrt.trainer.training.lifetime import Lifetime
from psrt.trainer.training.shrinking import Shrunk


class ConnectedCalls(ABC):
    """The part of `ConnectedExecutor` that computes nothing."""

    part: TrainerProgram
    _carrier: Carrier
    _host: str
    _call_timeout_s: float
    _life: Lifetime

    @abstractmethod
    def _settled(self) -> AnyCluster:
        """The cluster, with the exchange of the last step finished."""

    def rows(self, table: str) -> Iterator[tuple[I64, F32]]:
        """Pages of ids (n,) and rows (n, width): all rows of a table that training has touched."""
        return self._settled().rows(table)

    def shrink(self, *tables: str, dry_run: bool = False) -> dict[str, Shrunk]:
        """Decay the shows and clicks of sparse tables and drop expired rows; return the counts.

        All tables without a name; see `psrt.tables.Lifecycle`. A dry run changes nothing and
        returns what would be dropped.
        """
        return self._settled().shrink(tables, dry_run)

    def barrier(self, name: str = "", timeout_s: float | None = None) -> None:
        """Wait until every other running trainer has called it as often, by `name`.

        Call it between two steps; while a trainer waits here, no synchronous round closes.
        """
        timeout_s = self._call_timeout_s if timeout_s is None else timeout_s
        self._settled().meet(name, timeout_s)

    def exchange_records(self, scattering: Scattering, host: str = "") -> deque[Records]:
        """Shuffle records over all trainers; every trainer calls it between two steps.

        `host` replaces the one this executor was made with.
        """
        part, cluster = self.part, self._settled()
        who = (part.trainer_id, part.trainers, part.job_id)
        host = host or self._host
        seat = Seat(*who, carrier=self._carrier, host=host, timeout_s=self._call_timeout_s)
        with self._life.failing_for_good():
            return exchange(scattering, seat, partial(cluster.tell, "shuffle"))

    def sum_records(self, count: int) -> int:
        """Return the sum of the counts of all running trainers; each calls it between two steps."""
        cluster = self._settled()
        with self._life.failing_for_good():
            return total_of(cluster.tell("records", str(count), self._call_timeout_s))
