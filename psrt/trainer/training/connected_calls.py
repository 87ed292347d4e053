"""Calls of a connected executor between two steps: rows, evictions, meetings, global shuffles."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial

from psrt.core.errors import JobError
from psrt.core.types import F32, I64
from psrt.data.datasets import Records, Scattering
from psrt.partition.transpiler import TrainerProgram
from psrt.rpc.dialing import Carrier
from psrt.trainer.shuffle import Seat, exchange, total_of
from psrt.trainer.training.cluster import AnyCluster
from psrt.trainer.training.lifetime import Lifetime
from psrt.trainer.training.shrinking import Shrunk

NOTE_NUMBERS = 1024
"""Numbers in one note of `gather_numbers`: some 20 KiB."""


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

    def end_early(self) -> None:
        """Ask all trainers to end: `ends_early` is True for each of them from then on."""
        self._settled().end_early()

    def ends_early(self) -> bool:
        """Return True once a trainer has called `end_early`; one call to a pserver."""
        return self._settled().members().ends_early

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

    def gather_numbers(self, numbers: Sequence[float]) -> list[list[float]]:
        """Return the numbers of each running trainer; each calls it between two steps.

        Raises `JobError` if another trainer has another number of them.
        """
        cluster = self._settled()
        found: list[list[float]] = []
        for start in range(0, max(1, len(numbers)), NOTE_NUMBERS):
            note = json.dumps([len(numbers), *numbers[start : start + NOTE_NUMBERS]])
            with self._life.failing_for_good():
                notes = cluster.tell("numbers", note, self._call_timeout_s)
            parts = [json.loads(each) for each in notes if each]
            _check_counts([part[0] for part in parts])  # all trainers raise, or none: no harm done
            found = found or [[] for _ in parts]
            for whole, part in zip(found, parts, strict=True):
                whole += part[1:]
        return found


def _check_counts(counts: Sequence[int]) -> None:
    if len(set(counts)) > 1:
        raise JobError(
            f"trainers brought {', '.join(map(str, counts))} numbers to one call, which returned "
            "nothing.",
            hint="All trainers call it with arrays of one size, equally often.",
        )
