"""Connection of a trainer to its pservers: one `ConnectedExecutor` per transpiled program.

The first run connects, with its replicas and strategies; later runs need equal replicas. Closing
sends pending gradients and reports to the pservers that this trainer has completed. A script that
ends without closing and without an error counts as completed, since Fluid's scripts end this way.
A script that fails does not: its pservers detect a lost trainer, as after a kill.
"""

from __future__ import annotations

import atexit
from collections.abc import Iterable, Sequence
from typing import Any

from psrt.core.errors import ProgramError
from psrt.executor.profiling import Profiler
from psrt.executor.strategies import BuildStrategy, ExecutionStrategy
from psrt.fluid.framework import FluidProgram
from psrt.fluid.running import ending
from psrt.fluid.running.fetched import ReplicaValues
from psrt.fluid.running.runs import default_build
from psrt.fluid.running.scope import FluidScope
from psrt.fluid.running.values import Batch, OnStep
from psrt.trainer.training import ConnectedExecutor


class ConnectedRun:
    """Run of a transpiled program; `program.job` is the trainer's part."""

    def __init__(
        self,
        program: FluidProgram,
        scope: FluidScope,
        replicas: int = 1,
        build: BuildStrategy | None = None,
        threading: ExecutionStrategy | None = None,
    ) -> None:
        self.program, self.replicas = program, replicas
        self._values = ReplicaValues(program)
        keep = program.persistables | (program.memory.keep if program.memory else frozenset())
        self.executor = ConnectedExecutor(
            program.job,
            scope,
            call_timeout_s=program.call_timeout_s,
            replicas=replicas,
            build_strategy=build or default_build(program),
            exec_strategy=threading,
            keep=sorted(keep),
        )

    def run(self, feed: Batch, fetch: Sequence[str], merged: bool = True) -> list[Any]:
        """Train one step with the pservers; returns the values of `fetch`."""
        if self.replicas == 1:
            return self.executor.run(feed, fetch, return_merged=merged)
        found = self.executor.run(feed, fetch, return_merged=self._values.merged(merged))
        return self._values.joined(found, merged)

    def run_from(self, batches: Iterable[Batch], fetch: Sequence[str], on_step: OnStep) -> None:
        """Run every batch; rows of the next one are pulled while the present one computes."""
        self.executor.run_from(batches, fetch, on_step)

    def watch(self, profiler: Profiler | None, fetch: Sequence[str]) -> None:
        """Record later ops and calls to pservers; None stops the recording of ops."""
        self.executor.profiler = profiler

    def close(self) -> None:
        """Send pending gradients, then complete this trainer at its pservers."""
        try:
            self.executor.stop()
        finally:
            self.executor.close()


def connected(
    program: FluidProgram,
    scope: FluidScope,
    replicas: int = 1,
    build: BuildStrategy | None = None,
    threading: ExecutionStrategy | None = None,
) -> ConnectedRun:
    """Return the connection of a transpiled program, started on first use.

    Raises `ProgramError` if it has another number of replicas.
    """
    ending.went_on()
    if program.connection is None:
        run = ConnectedRun(program, scope, replicas, build, threading)
        run.executor.start()
        program.connection = run
        _open.append(program)
    found: ConnectedRun = program.connection
    if found.replicas != replicas:
        raise ProgramError(
            f"The program is connected to its pservers with {found.replicas} replicas; it was run "
            f"with {replicas} now.",
            hint="Run a transpiled program through one executor: a trainer connects once.",
        )
    return found


def disconnect(program: FluidProgram) -> None:
    """Complete the trainer of a transpiled program, if it has connected."""
    run, program.connection = program.connection, None
    if run is not None:
        _open.remove(program)
        run.close()


_open: list[FluidProgram] = []


@atexit.register
def _complete_at_end() -> None:
    """Complete open trainers, unless the script failed: pservers then detect lost trainers."""
    while _open and not ending.failed():
        disconnect(_open[-1])
