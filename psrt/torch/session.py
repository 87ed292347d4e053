"""A session: the tables of a model, and the connection to where they are.

    with pt.local() as session:                 tables in this process
    with pt.connect("a:6170,b:6170") as session:    tables on pservers

Modules that are made inside the block declare their tables to it. The first lookup opens it. At the
end of the block this trainer reports that it has completed, unless an error ended it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn, Self

import numpy as np
import torch

from psrt.communicator.base import Gradients
from psrt.core.errors import ConfigError, ProgramError
from psrt.core.types import F32, I64
from psrt.torch.backends import Backend
from psrt.torch.cuts import State, check_fits, has_trained_before, moment
from psrt.torch.declared import DeclaredParameter, Rates, is_declared
from psrt.torch.rows_ahead import RowsAhead
from psrt.torch.staging import numbers_of
from psrt.torch.table import Table

MAX_LOOKUPS = 64
"""Lookups of a table under grad until `TableOptimizer.step`, in accumulation, too."""

CUT_S = 600.0
"""Longest wait for a cut that a `state_dict` makes."""


class TableSession:
    """The tables of one trainer; belongs to the training thread.

    `seed` decides the first values of tables. A table may be looked up `max_lookups` times under
    grad between two steps: more means that `step()` was forgotten, and would fill memory.
    """

    def __init__(self, backend: Backend, seed: int = 0, max_lookups: int = MAX_LOOKUPS) -> None:
        self.backend, self.seed, self.max_lookups = backend, seed, max_lookups
        self.tables: dict[str, Table] = {}
        self.ahead = RowsAhead()
        self._dense: dict[str, torch.nn.Parameter] = {}
        self._declared: dict[str, DeclaredParameter] = {}
        self._is_open = self._ended = False
        self._steps, self._cut, self._cut_at = 0, 0, 0
        self._on_step: list[Callable[[], None]] = []
        self._counts_batches = False
        self._pid = os.getpid()

    def declare(self, parameter: DeclaredParameter) -> None:
        """Add a table or a dense parameter; one that is declared twice alike is shared.

        Raises `ProgramError` for another declaration of a name, or after the first lookup of a
        connected session.
        """
        if is_declared(parameter, self._declared):
            return
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

    def dense(self, parameter: DeclaredParameter, values: torch.nn.Parameter) -> None:
        """Declare a dense parameter; `values` follow those of the pservers from then on."""
        if parameter.name in self._declared:
            raise ProgramError(
                f"{parameter.name} was declared twice.",
                hint="Give each DenseOnServer another name.",
            )
        self.declare(parameter)
        self._dense[parameter.name] = values

    def pull(self, wanted: Mapping[str, I64]) -> dict[str, F32]:
        """Rows (n, width) float32 of the ids (n,) of each table; changes nothing."""
        self.open()
        wanted = {name: np.ascontiguousarray(ids, np.int64) for name, ids in wanted.items()}
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

    def push(self, gradients: Gradients, rates: Rates, sums: bool = False) -> None:
        """Make one update, in a round of Sync by the mean over trainers, or by their sum; raises
        errors of earlier pushes, too."""
        self.open()
        with self.ahead.calls:
            self.backend.expect(self.ahead.before_push())
            self._take(self.backend.push(gradients, rates, sums))
        self.ahead.arrived(self.backend.brought)
        self._steps += 1
        for action in self._on_step:
            action()

    def on_step(self, action: Callable[[], None]) -> None:
        """Call `action` after each step from now on, skipped ones included."""
        self._on_step.append(action)

    def flush(self) -> None:
        """Wait until all pushes are applied; dense parameters are then the newest."""
        self.open()
        with self.ahead.calls:
            self._take(self.backend.flush())

    def skip(self) -> None:
        """Take part in a step without gradients, so that no other trainer waits for this one.

        In Sync it closes a round, in Ssp it moves the clock; every mode counts the step.
        """
        self.push({}, {})

    def open(self) -> None:
        """Reach the tables, if that was not done; raises `ProgramError` in a forked process."""
        self._check()
        if not self._is_open:
            first = {name: numbers_of(each) for name, each in self._dense.items()}
            self._take(self.backend.open(self._declared.values(), first))
            self._is_open, self._cut = True, self.backend.resumed_cut
            if self._counts_batches:
                self.counts_batches()

    def counts_batches(self) -> None:
        """Record that each batch is to be trained once, from positions that cuts have.

        Raises `JobError`, here or on opening, if a former process of this rank has trained in the
        running job: where it was is not known.
        """
        self._counts_batches = True
        if self._is_open and self.backend.replaces:
            raise has_trained_before(self.backend.trainer_id)

    @property
    def resumed_cut(self) -> int:
        """The cut that the tables began with, 0 = none; known once the session is open."""
        return self.backend.resumed_cut

    @property
    def run(self) -> str:
        """The identity of the training, equal on all ranks and after a resume."""
        return self.backend.run

    def make_cut(self, timeout_s: float) -> int:
        """Make a cut of the whole job; every rank calls it after the same step.

        Returns its number once it is complete. Raises `ConfigError` where no cuts are written, and
        `JobError` if it is given up: training may go on then.
        """
        self.open()
        with self.ahead.calls:
            self._cut, self._cut_at = self.backend.make_cut(timeout_s), self._steps
        return self._cut

    def moment(self) -> State:
        """The moment of the tables, for a `state_dict`."""
        cut = self._cut if self._steps == self._cut_at else 0
        return moment(self.run if self._is_open else "", cut, self._steps)

    def check_fits(self, state: Mapping[str, Any]) -> None:
        """Raise `ConfigError` unless the tables are those of the moment of a state."""
        self.open()
        check_fits(state, self.moment())

    def state_dict(self) -> State:
        """A `Stateful` of torch.distributed.checkpoint: its state is a cut, made now unless one has
        this moment. Put it before the model; every rank calls it after the same step."""
        self.open()
        if not self.moment()["cut"]:
            self.make_cut(CUT_S)
        return self.moment()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Raise `ConfigError` unless the pservers began with the cut of the state."""
        self.check_fits(state)

    def complete(self) -> None:
        """Apply what is queued and report that this trainer is done; idempotent."""
        if not self._ended and self._is_open:
            self._check()
            self._take(self.backend.complete())
        self.close()

    @property
    def has_ended(self) -> bool:
        """True once tables are not reachable any more."""
        return self._ended

    def close(self) -> None:
        """End without a report: pservers count a trainer that has not completed as lost."""
        if not self._ended and os.getpid() == self._pid:
            self.backend.close()
        self._ended = True
        if self in _CURRENT.sessions:
            _CURRENT.sessions.remove(self)

    def begin(self) -> Self:
        """Enter without a block, as in a notebook, until `complete` or `close`; raises
        `ProgramError` after its end."""
        self._check()
        _CURRENT.sessions.append(self)
        return self

    def __enter__(self) -> Self:
        return self.begin()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.complete()
        self.close()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """This session: copies of a model share its tables."""
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise ProgramError(
            "a model with tables of a session was pickled: its rows are not in it. Nothing was "
            "written.",
            hint="Save model.state_dict() beside a cut, by a pt.Checkpointer, or pt.export(model).",
        )

    def _take(self, dense: Mapping[str, F32]) -> None:
        """Copy values of pservers into the parameters of modules."""
        with torch.no_grad():
            for name, values in dense.items():
                parameter = self._dense[name]
                mine = values if values.flags.writeable else values.copy()
                parameter.copy_(torch.from_numpy(mine.reshape(parameter.shape)))

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


class _Current(threading.local):
    """The sessions whose blocks a thread is in, the innermost last."""

    def __init__(self) -> None:
        self.sessions: list[TableSession] = []


_CURRENT = _Current()


def current() -> TableSession:
    """The innermost session of this thread; raises `ConfigError` without one."""
    if not _CURRENT.sessions:
        raise ConfigError(
            "a module with a table was made outside of a session.",
            hint="Make the model inside of `with pt.local():` or `with pt.connect():`.",
        )
    return _CURRENT.sessions[-1]
