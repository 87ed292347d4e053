"""`FluidParallelExecutor`: runs one program by replicas over one scope."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psrt.core.errors import ConfigError
from psrt.executor import strategies
from psrt.executor.strategies import ExecutionStrategy
from psrt.fluid.compiler import BuildStrategy, CompiledProgram
from psrt.fluid.framework import FluidProgram, default_main_program
from psrt.fluid.names import no_cuda
from psrt.fluid.running import Feed, Fetch, FetchedTensors, FluidScope, chosen, names_of, returned


class FluidParallelExecutor:
    """Executor of CPU_NUM replicas.

    `share_vars_from` is the executor that trains; this one, a test, takes its parameters and number
    of replicas. `num_trainers` and `trainer_id` are those of a program transpiled without pservers.
    Raises `ConfigError` for others, and for `use_cuda` without `share_vars_from`.
    """

    def __init__(
        self,
        use_cuda: bool = False,
        loss_name: str | None = None,
        main_program: FluidProgram | None = None,
        share_vars_from: FluidParallelExecutor | None = None,
        exec_strategy: ExecutionStrategy | None = None,
        build_strategy: strategies.BuildStrategy | None = None,
        num_trainers: int = 1,
        trainer_id: int = 0,
        scope: FluidScope | None = None,
    ) -> None:
        if use_cuda and share_vars_from is None:
            raise no_cuda("fluid.ParallelExecutor(use_cuda=True)")
        program = main_program or default_main_program()
        if num_trainers != 1 and not _is_part_of(program, num_trainers, trainer_id):
            raise ConfigError(
                f"fluid.ParallelExecutor was asked to be trainer {trainer_id} of {num_trainers}, "
                "but its program was not transpiled so.",
                hint='Transpile it with config.mode = "nccl2", trainers= and current_endpoint=.',
            )
        trains = share_vars_from
        self._has_memory = False
        self._scope: FluidScope = chosen(trains._scope if scope is None and trains else scope)
        shared = None if trains is None else trains._compiled
        self._compiled: CompiledProgram = CompiledProgram(program)
        self._compiled.with_data_parallel(loss_name, build_strategy, exec_strategy, shared)

    @property
    def device_count(self) -> int:
        """Number of replicas that share a batch."""
        return self._compiled.replicas

    def run(
        self,
        fetch_list: Sequence[Fetch] | Fetch | None = None,
        feed: Feed | Sequence[Feed] | None = None,
        feed_dict: Feed | None = None,
        return_numpy: bool = True,
    ) -> list[Any]:
        """Compute one batch, or a list of its parts; returns values of the whole batch.

        Without a feed each replica takes a batch of the program's loaders. With `async_mode` these,
        or the parts of a list, are a step each, and the values are those of the last one.
        """
        compiled, given = self._compiled, feed if feed is not None else feed_dict
        program = compiled.program
        tensors = None if return_numpy else FetchedTensors(program, fetch_list)
        names = tensors.names if tensors else names_of(fetch_list, program.current)
        self._has_memory = True
        values = returned(compiled.compute(compiled.run_over(self._scope), given, names))
        return tensors.of(values, self._scope) if tensors else values

    def drop_local_exe_scopes(self) -> None:
        """Release the memory of temporary vars; the next run makes it anew."""
        run = self._scope.runs.get(self._compiled)
        if run is not None:
            run.drop_memory()
        self._has_memory = False

    def _need_create_local_exe_scopes(self) -> bool:
        """Return whether the next run makes memory of temporary vars; Fluid's tests ask it."""
        return not self._has_memory


def _is_part_of(program: FluidProgram, trainers: int, trainer_id: int) -> bool:
    """Return True for a program that was transpiled to be this trainer of so many."""
    job = program.job
    return job is not None and (job.trainers, job.trainer_id) == (trainers, trainer_id)


ParallelExecutor = FluidParallelExecutor  # its name in PaddlePaddle


__all__ = ["BuildStrategy", "ExecutionStrategy", "FluidParallelExecutor", "ParallelExecutor"]
