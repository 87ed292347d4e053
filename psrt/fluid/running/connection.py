"""A trainer's way to its pservers: one `ConnectedExecutor` for each transpiled program.

The first run connects, with the replicas and strategies it brings; later ones must bring the same.
Closing it drains what is under way and tells the pservers that this trainer has completed. A script
that ends without closing, and without an error, has completed too: Fluid's scripts end so. One that
fails has not: its pservers find it lost, as if it had been killed.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from psrt.core.errors import ProgramError
from psrt.executor.profiling import Profiler
from psrt.executor.strategies import BuildStrategy, ExecutionStrategy
from psrt.fluid.framework import FluidProgram
from psrt.fluid.running import ending
from psrt.fluid.running.scope import FluidScope
from psrt.fluid.running.values import Batch
from psrt.trainer.training import ConnectedExecutor


class ConnectedRun:
    """A transpiled program at work: `program.job` is the trainer's part."""

    def __init__(
        self,
        program: FluidProgram,
        scope: FluidScope,
        replicas: int = 1,
        build: BuildStrategy | None = None,
        how: ExecutionStrategy | None = None,
    ) -> None:
        self.program, self.replicas = program, replicas
        memory = program.memory
        if build is None and memory is not None:
            build = BuildStrategy(memory_optimize=True, skip_grads=memory.skip_grads)
        keep = program.persistables | (memory.keep if memory else frozenset())
        self.executor = ConnectedExecutor(
            program.job,
            scope,
            call_timeout_s=program.call_timeout_s,
            replicas=replicas,
            build_strategy=build,
            exec_strategy=how,
            keep=sorted(keep),
        )

    def run(self, feed: Batch, fetch: Sequence[str], merged: bool = True) -> list[Any]:
        """One step of training by pservers."""
        return self.executor.run(feed, fetch, return_merged=merged)

    def run_from(
        self,
        batches: Iterable[Batch],
        fetch: Sequence[str],
        on_step: Callable[[list[Any]], None],
    ) -> None:
        """Batches until they end; rows of the next are asked for while one computes."""
        self.executor.run_from(batches, fetch, on_step)

    def watch(self, profiler: Profiler | None, fetch: Sequence[str]) -> None:
        """Record ops, and calls to pservers, from now on; None stops the ops."""
        self.executor.profiler = profiler

    def close(self) -> None:
        """Complete: what is under way arrives, then the pservers count this trainer as done."""
        try:
            self.executor.stop()
        finally:
            self.executor.close()


def connected(
    program: FluidProgram,
    scope: FluidScope,
    replicas: int = 1,
    build: BuildStrategy | None = None,
    how: ExecutionStrategy | None = None,
) -> ConnectedRun:
    """The connection of a transpiled program, made and started if there is none."""
    ending.went_on()
    if program.connection is None:
        run = ConnectedRun(program, scope, replicas, build, how)
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
    """Complete the trainer of a transpiled program; nothing where it never connected."""
    run, program.connection = program.connection, None
    if run is not None:
        _open.remove(program)
        run.close()


_open: list[FluidProgram] = []


@atexit.register
def _complete_at_end() -> None:
    """A trainer whose script failed is left to be found lost."""
    while _open and not ending.failed():
        disconnect(_open[-1])
