"""Where a program runs in this process: its scope and executor, the BLAS threads, the kernels."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias

from threadpoolctl import threadpool_limits

from psrt.config.schema import TrainerConfig
from psrt.core.types import F32, Array
from psrt.executor.scope import Scope, initial_values
from psrt.executor.sequential import Executor
from psrt.kernels import jit
from psrt.trainer.ahead import Ahead
from psrt.trainer.batches import PREPARED_AHEAD
from psrt.trainer.evaluate import evaluate
from psrt.trainer.job import Job
from psrt.trainer.loop import RowSource
from psrt.trainer.metrics import Tally
from psrt.trainer.outputs import Outputs
from psrt.trainer.prefetch import Prepared

Say: TypeAlias = Callable[[str], None]


@contextmanager
def prepared_process(settings: TrainerConfig, say: Say) -> Iterator[None]:
    """BLAS held to its threads, kernels loaded: a step must not wait for a compiler.

    Without the limit the BLAS of every trainer on a host takes all cores, and they fight.
    """
    if settings.cache_dir:
        jit.set_cache_dir(settings.cache_dir)
    compiled: list[str] = []

    def on_compile(name: str) -> None:
        if not compiled:
            say("compiling kernels, once for this host and version of psrt")
        compiled.append(name)

    with threadpool_limits(settings.cpu_threads, user_api="blas"):
        jit.warm_up(("trainer", "data"), on_compile)
        yield


class Workshop:
    """The program of a job over its own scope; parameters arrive by `fill`."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.scope = Scope()
        self.executor = Executor(job.program, self.scope)
        self.scope.reset_state(job.program)
        for parameter in job.program.parameters.values():
            if not parameter.sparse and not parameter.trainable:
                self.scope[parameter.name] = initial_values(parameter)

    def fill(self, dense: Mapping[str, F32]) -> None:
        """Put whole parameters in place of the ones there."""
        for name, values in dense.items():
            self.scope[name] = values

    def dense(self) -> dict[str, Array]:
        """Every dense parameter, trained or not."""
        parameters = self._job.program.parameters.values()
        return {p.name: self.scope[p.name] for p in parameters if not p.sparse}

    def test(self, batches: Generator[Prepared, None, None], source: RowSource) -> Tally:
        """Loss, AUC and metrics over `batches`, metrics counting from zero."""
        self.scope.reset_state(self._job.program)
        with Ahead(batches, PREPARED_AHEAD) as ahead:
            return evaluate(ahead, self.executor, source, Outputs(self._job.model))
