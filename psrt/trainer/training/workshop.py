"""Where a program runs in this process: its scope and executor, the BLAS threads, the kernels."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias

from threadpoolctl import threadpool_limits

from psrt.config.schema import TrainerConfig
from psrt.core.allocator import keep_freed_memory
from psrt.core.threads import schedule
from psrt.core.types import F32, Array
from psrt.executor.memory import Scope, initial_values
from psrt.executor.parallel import ParallelExecutor
from psrt.executor.program import Executor
from psrt.executor.strategies import BuildStrategy, ReduceStrategy
from psrt.graph.program import Program
from psrt.kernels import jit
from psrt.partition.transpile import local_program, program_for
from psrt.trainer.inputs import PREPARED_AHEAD, Ahead, Job, Outputs, PreparedBatch
from psrt.trainer.training.evaluate import evaluate
from psrt.trainer.training.local_parameters import LocalDenseParameters, LocalUpdates
from psrt.trainer.training.loop import RowSource, Steps
from psrt.trainer.training.metrics import Tally

Say: TypeAlias = Callable[[str], None]


@contextmanager
def prepared_process(settings: TrainerConfig, say: Say) -> Iterator[None]:
    """BLAS held to its threads, freed memory kept, kernels loaded: no step waits for a compiler.

    Without the limit the BLAS of every trainer on a host takes all cores, and they fight.
    """
    if settings.cache_dir:
        jit.set_cache_dir(settings.cache_dir)
    compiled: list[str] = []

    def on_compile(name: str) -> None:
        if not compiled:
            say("compiling kernels, once for this host and version of psrt")
        compiled.append(name)

    keep_freed_memory()
    schedule(settings.scheduling)
    groups = ("trainer", "data", "pserver") if settings.local else ("trainer", "data")
    jit.on_compile(on_compile)
    with threadpool_limits(settings.cpu_threads, user_api="blas"):
        jit.warm_up(groups)
        yield


def build_strategy() -> BuildStrategy:
    """Every pass: what a trainer fetches is known. Replicas share one copy of the parameters."""
    return BuildStrategy(
        reduce_strategy=ReduceStrategy.Reduce,
        memory_optimize=True,
        fuse_elewise_add_act_ops=True,
        fuse_all_optimizer_ops=True,
        fuse_embedding_pool_concat=True,
        fuse_loss_gradient=True,
    )


class Workshop:
    """The program of a job over its own scope; parameters arrive by `fill`.

    `replicas` of it share each batch. They are trained here, by the program's own updates, if the
    job's mode is Geo or the trainer is `alone`: without pservers, whatever the mode. `own` is what
    the communicator of a Geo job must know of. `first_example` is as in `Executor`. Close it after
    use.
    """

    def __init__(
        self, job: Job, replicas: int = 1, alone: bool = False, first_example: int = 0
    ) -> None:
        self.job, self.first_example = job, first_example
        self.scope = Scope()
        mode, is_geo = job.config.communication, job.config.mode == "geo" and not alone
        program = local_program(job.program) if alone else program_for(job.program, mode)
        self.executor = _executor(program, self.scope, replicas, job, first_example)
        trains_here = alone or is_geo
        self.steps: Steps = LocalUpdates(self.executor, program) if trains_here else self.executor
        self.own = LocalDenseParameters(program, self.scope, self.executor) if is_geo else None
        self.scope.reset_state(job.program)
        for parameter in job.program.parameters.values():
            if not parameter.sparse and not parameter.trainable:
                self.scope[parameter.name] = initial_values(parameter)

    def close(self) -> None:
        """End the threads of replicas."""
        if isinstance(self.executor, ParallelExecutor):
            self.executor.close()

    def fill(self, dense: Mapping[str, F32]) -> None:
        """Put whole parameters in place of the ones there."""
        for name, values in dense.items():
            self.scope[name] = values

    def dense(self) -> dict[str, Array]:
        """Every dense parameter, trained or not."""
        parameters = self.job.program.parameters.values()
        return {p.name: self.scope[p.name] for p in parameters if not p.sparse}

    def test(self, batches: Generator[PreparedBatch, None, None], source: RowSource) -> Tally:
        """Loss, AUC and metrics over `batches`, metrics counting from zero, dropout off."""
        self.scope.reset_state(self.job.program)
        executor = Executor(self.job.program.clone(for_test=True), self.scope)
        with Ahead(batches, PREPARED_AHEAD) as ahead:
            return evaluate(ahead, executor, source, Outputs(self.job.model))


def _executor(
    program: Program, scope: Scope, replicas: int, job: Job, first_example: int
) -> Executor | ParallelExecutor:
    keep, build = Outputs(job.model).names, build_strategy()
    if replicas == 1:
        return Executor(
            program, scope, build_strategy=build, keep=keep, first_example=first_example
        )
    return ParallelExecutor(program, scope, replicas, build, keep=keep, first_example=first_example)
