"""An executor that holds every parameter itself: each `run` is one step of training.

    executor = LocalExecutor(program)
    for feed in batches:
        (loss,) = executor.run(feed, [loss_var])

Dense parameters, and tables of fixed height, are in the scope. Distributed tables are in memory of
their own, with a row for each id that was trained; any int64 is an id. Belongs to one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

from psrt.core.errors import ProgramError
from psrt.core.types import F32, I64
from psrt.executor.memory import Scope
from psrt.executor.parallel import EpochResult
from psrt.executor.program import Feed
from psrt.graph.program import Program, Var
from psrt.kernels import jit
from psrt.partition.transpile import local_program
from psrt.trainer.inputs import BatchPreparer
from psrt.trainer.training import RunOptions, SingleTrainer, TrainingRun, names_of


class LocalExecutor:
    """Training of `program` without pservers; `scope` gets the initial values.

    `replicas` copies of the program share each batch. `keep` names vars that are fetched although
    passes would fuse them away. Raises `ProgramError` for a program that trains nothing.
    """

    def __init__(
        self,
        program: Program,
        scope: Scope | None = None,
        *,
        replicas: int = 1,
        keep: Sequence[str | Var] = (),
    ) -> None:
        if not program.trained():
            raise ProgramError(
                "The program trains nothing.",
                hint="Call minimize of an optimizer, or give psrt.Model one.",
            )
        jit.warm_up(("trainer", "pserver"))
        self.program, self.scope = program, Scope() if scope is None else scope
        self._trainer = SingleTrainer(program, self.scope)
        options = RunOptions(replicas=replicas, keep=keep, updates_here=True)
        self._run = TrainingRun(local_program(program), self.scope, options)
        self._run.open(self._trainer.communicator, 0.0, "python")
        self._preparer = BatchPreparer(program)

    def run(self, feed: Feed, fetch: Sequence[str | Var] = ()) -> list[Any]:
        """Train on one batch; return the vars in `fetch`, parameters as they are after the step."""
        return self._run.step(self._preparer.prepare(feed), names_of(fetch))

    def run_from(
        self,
        batches: Iterable[Feed],
        fetch: Sequence[str | Var] = (),
        on_step: Callable[[list[Any]], None] | None = None,
    ) -> EpochResult:
        """Train on `batches` until they end; `on_step` is called with the fetches of each."""
        done = EpochResult()
        for feed in batches:
            batch = self._preparer.prepare(feed)
            found = self._run.step(batch, names_of(fetch))
            done.count(batch.examples, found)
            if on_step is not None:
                on_step(found)
        return done

    def pull_rows(self, wanted: Mapping[str, I64]) -> dict[str, F32]:
        """Return rows (n, width) of the distinct ids (n,) of each table."""
        return dict(self._run.pull_rows(wanted))

    def rows(self, table: str) -> Iterator[tuple[I64, F32]]:
        """Pages of ids (n,) and rows (n, width): all rows of a table that training has changed."""
        return self._trainer.rows(table)

    def stop(self) -> None:
        """End the training; the parameters stay."""
        self._run.stop(0.0)

    def close(self) -> None:
        """End the threads of replicas."""
        self._run.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.close()
