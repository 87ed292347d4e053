"""A session: the tables of a model, and the connection to where they are.

    with pt.local() as session:                 tables in this process
    with pt.connect("a:6170,b:6170") as session:    tables on pservers

Modules that are made inside the block declare their tables to it. The first lookup opens it. At the
end of the block this trainer reports that it has completed, unless an error ended it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Self

from psrt.communicator.base import Gradients
from psrt.core.errors import ConfigError, ProgramError
from psrt.core.specs import Sync
from psrt.core.types import F32, I64
from psrt.torch.backends import Backend, Rates
from psrt.torch.declared import DeclaredParameter
from psrt.torch.rows_ahead import RowsAhead
from psrt.torch.table import Table

MAX_LOOKUPS = 64
"""Lookups of a table under grad until `TableOptimizer.step`, in accumulation, too."""


class TableSession:
    """The tables of one trainer; belongs to the training thread.

    `seed` decides the first values of tables. A table may be looked up `max_lookups` times under
    grad between two steps: more means that `step()` was forgotten, and would fill memory.
    """

    def __init__(self, backend: Backend, seed: int = 0, max_lookups: int = MAX_LOOKUPS) -> None:
        self.backend, self.seed, self.max_lookups = backend, seed, max_lookups
        self.tables: dict[str, Table] = {}
        self.dense: Mapping[str, F32] = {}
        self.ahead = RowsAhead()
        self._declared: dict[str, DeclaredParameter] = {}
        self._is_open = self._ended = False
        self._pid = os.getpid()

    def declare(self, parameter: DeclaredParameter) -> None:
        """Add a table or a dense parameter; one that is declared twice alike is shared.

        Raises `ProgramError` for another declaration of a name, or after the first lookup of a
        connected session.
        """
        known = self._declared.get(parameter.name)
        if known == parameter:
            return
        if known is not None:
            raise ProgramError(
                f"{parameter.name} was declared twice, and differently.",
                hint="A shared table has one width, optimizer, initializer and padding id. Give "
                "another table another name.",
            )
        if self._is_open:
            raise ProgramError(
                f"{parameter.name} was declared after the first lookup; nothing was changed.",
                hint="Make all modules with tables before the first batch.",
            )
        self._declared[parameter.name] = parameter

    def table(self, parameter: DeclaredParameter) -> Table:
        """Declare a table; returns the one of its name."""
        self.declare(parameter)
        return self.tables.setdefault(parameter.name, Table(self, parameter))

    def pull(self, wanted: Mapping[str, I64]) -> dict[str, F32]:
        """Rows (n, width) float32 of the distinct ids (n,) int64 of each table; changes nothing."""
        self.open()
        found = self.ahead.find(wanted)
        rest = {name: ids for name, ids in wanted.items() if name not in found}
        return found | self.pull_now(rest) if rest else found

    def pull_now(self, wanted: Mapping[str, I64]) -> dict[str, F32]:
        """`pull` without rows that were read ahead; another thread may call it once opened."""
        self._check()
        with self.ahead.calls:
            return self.backend.pull(wanted)

    def rows(self, table: str) -> Iterator[tuple[I64, F32]]:
        """Pages of ids (n,) and rows (n, width): all rows of a table that were ever updated."""
        self.open()
        with self.ahead.calls:
            return self.backend.rows(table)

    def begin_with(self, weights: Mapping[str, F32]) -> None:
        """Let tables begin with weights (n, width) for the ids 0 … n − 1; raises `ConfigError`
        with pservers, `ProgramError` after the first lookup."""
        if self._is_open:
            raise ProgramError(
                f"first rows of {', '.join(weights)} were given after the first lookup; nothing "
                "was changed.",
                hint="Make all modules with tables before the first batch.",
            )
        self.backend.begin_with(weights)

    def push(self, gradients: Gradients, rates: Rates) -> None:
        """Make one update; raises errors of earlier pushes, too."""
        self.open()
        with self.ahead.calls:
            self.backend.expect(self.ahead.before_push())
            self.dense = self.backend.push(gradients, rates) or self.dense
        self.ahead.arrived(self.backend.brought)

    def skip(self) -> None:
        """Take part in a step without gradients, so that no other trainer waits for this one."""
        if isinstance(self.backend.mode, Sync):
            self.push({}, {})

    def open(self) -> None:
        """Reach the tables, if that was not done; raises `ProgramError` in a forked process."""
        self._check()
        if not self._is_open:
            self.dense = self.backend.open(self._declared.values())
            self._is_open = True

    def complete(self) -> None:
        """Apply what is queued and report that this trainer is done; idempotent."""
        if not self._ended and self._is_open:
            self._check()
            self.backend.complete()
        self.close()

    def close(self) -> None:
        """End without a report: pservers count a trainer that has not completed as lost."""
        if not self._ended and os.getpid() == self._pid:
            self.backend.close()
        self._ended = True
        if self in _CURRENT:
            _CURRENT.remove(self)

    def begin(self) -> Self:
        """Enter without a block, as in a notebook, until `complete` or `close`."""
        _CURRENT.append(self)
        return self

    def __enter__(self) -> Self:
        return self.begin()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.complete()
        self.close()

    def _check(self) -> None:
        if os.getpid() != self._pid:
            raise ProgramError(
                f"a session of process {self._pid} was used in process {os.getpid()}, which was "
                "forked from it; nothing was sent.",
                hint="Workers of a DataLoader only read and collate. Look up in the trainer's "
                "process, or connect in the new one.",
            )
        if self._ended:
            raise ProgramError(
                "the session has ended: its tables are not reachable any more.",
                hint="Train inside of the block of pt.connect() or pt.local().",
            )


_CURRENT: list[TableSession] = []


def current() -> TableSession:
    """The innermost session; raises `ConfigError` without one."""
    if not _CURRENT:
        raise ConfigError(
            "a module with a table was made outside of a session.",
            hint="Make the model inside of `with pt.local():` or `with pt.connect():`.",
        )
    return _CURRENT[-1]
