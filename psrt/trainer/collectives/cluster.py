"""The trainers of a group in place of pservers: each holds every parameter."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NoReturn

from psrt.collective.meeting import meet
from psrt.collective.seat import GroupSeat
from psrt.communicator.collective import CollectiveCommunicator
from psrt.communicator.members import Members
from psrt.core.errors import ConfigError
from psrt.core.specs import Collective
from psrt.core.types import F32, I64
from psrt.executor.memory import Scope
from psrt.executor.parallel import ParallelExecutor
from psrt.executor.program import Executor
from psrt.graph.program import Program
from psrt.kernels import jit
from psrt.trainer.collectives.own import OwnParameters

PAGE_ROWS = 1 << 17


class CollectiveCluster:
    """One trainer's side of a group, which it reaches here; `close` leaves it.

    `program` is what this trainer trains, in `scope`, by `executor`.
    """

    def __init__(
        self,
        seat: GroupSeat,
        mode: Collective,
        program: Program,
        scope: Scope,
        executor: Executor | ParallelExecutor,
        *,
        connect_timeout_s: float,
        call_timeout_s: float,
    ) -> None:
        jit.warm_up(("trainer", "pserver"))  # before the others wait for this process
        own = OwnParameters(program, scope, executor)
        mark = hashlib.sha256(f"{mode}\n{program.to_text()}".encode()).hexdigest()
        self._tables = own.tables
        self.tables = tuple(own.tables)
        self._group = meet(seat, mark, connect_timeout_s, call_timeout_s)
        self.communicator = CollectiveCommunicator(self._group, mode, own)
        self._met: Counter[str] = Counter()

    def members(self) -> Members:
        """Return no other trainer: whoever asks has been in the last step of all."""
        return Members((), 0)

    def rows(self, table: str) -> Iterator[tuple[I64, F32]]:
        """Pages of ids (n,) and rows (n, width): all rows of a table that training has touched."""
        return self._tables[table].pages(PAGE_ROWS)

    def meet(self, name: str, timeout_s: float) -> None:
        """Wait until every other trainer has met at `name` as often as this one."""
        self.tell(f"barrier {name}", "", timeout_s)

    def tell(self, name: str, note: str, timeout_s: float, waits: bool = True) -> list[str]:
        """Meet at `name` once more, leave a note; return the notes of all trainers."""
        self._met[name] += 1
        return self._group.exchange_notes(f"{name} {self._met[name]}", note, timeout_s)

    def shrink(self, tables: Sequence[str], dry_run: bool) -> NoReturn:
        """Raise `ConfigError`: rows of trainers have no counters to expire by."""
        raise ConfigError(
            "a shrink was asked for in mode collective, where trainers hold the rows they train.",
            hint="Tables whose rows expire need pservers: train in mode sync, for instance.",
        )

    def end_early(self) -> None:
        """Do nothing: a job that may end early is refused in this mode."""

    def hurry(self) -> None:
        """Do nothing: a trainer that leaves waits for nobody."""

    def close(self) -> None:
        self.communicator.close()


__all__ = ["CollectiveCluster"]
