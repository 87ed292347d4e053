"""`CompiledProgram`: a program with its strategies, and replicas if requested."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from psrt.config.load import cpu_num
from psrt.core.errors import ProgramError
from psrt.core.hints import did_you_mean
from psrt.executor import strategies
from psrt.executor.strategies import ExecutionStrategy
from psrt.fluid.feeding import next_feed
from psrt.fluid.framework import FluidProgram
from psrt.fluid.names import CPUPlace
from psrt.fluid.running import (
    AnalysisConfig,
    Batch,
    Feed,
    FluidScope,
    LocalRun,
    NativeConfig,
    PaddlePredictor,
    ReplicatedRun,
    Run,
    connected,
    feed_of,
    run_async,
    run_steps,
)
from psrt.fluid.transpiler import FluidBuildStrategy, drawn, joined_batches
from psrt.partition.transpiler import TrainerProgram

BuildStrategy = FluidBuildStrategy  # its name in PaddlePaddle


class CompiledProgram:
    """A program with strategies; pass it to `Executor.run` in place of `program`.

    Raises `TypeError` for what is no program.
    """

    def __init__(
        self, program: FluidProgram, build_strategy: strategies.BuildStrategy | None = None
    ) -> None:
        if not isinstance(program, FluidProgram):
            raise TypeError(f"CompiledProgram was given {program!r}, which is no Program.")
        self.program = program
        self._build = build_strategy
        self._threading: ExecutionStrategy | None = None
        self._shared: CompiledProgram | None = None
        self.replicas = 0
        self._iterations = 1
        self.predictor: PaddlePredictor | None = None

    @property
    def is_dry(self) -> bool:
        """True if runs compute nothing: `ExecutionStrategy.dry_run`."""
        return self._threading is not None and self._threading.dry_run

    @property
    def _is_data_parallel(self) -> bool:
        return self.replicas > 0

    @property
    def _places(self) -> list[CPUPlace]:
        return [CPUPlace() for _ in range(self.replicas)]

    @property
    def _program(self) -> FluidProgram:
        return self.program

    def with_data_parallel(
        self,
        loss_name: str | None = None,
        build_strategy: strategies.BuildStrategy | None = None,
        exec_strategy: ExecutionStrategy | None = None,
        share_vars_from: CompiledProgram | None = None,
        places: Sequence[CPUPlace] | CPUPlace | int | None = None,
    ) -> CompiledProgram:
        """Run by replicas that share each batch: one for each of `places`, or CPU_NUM.

        `share_vars_from` is the compiled program that trains; this one takes its parameters and
        number of replicas. Raises `ProgramError` if the program has no var `loss_name`.
        """
        graph = self.program.graph
        if loss_name is not None and loss_name not in graph.vars:
            hint = did_you_mean(loss_name, graph.vars)
            raise ProgramError(f"The program has no var {loss_name} to be its loss.", hint=hint)
        self._build = drawn(build_strategy or self._build)
        threading = exec_strategy or ExecutionStrategy()
        self._iterations = threading.num_iteration_per_run  # each takes a batch
        self._threading = dataclasses.replace(threading, num_iteration_per_run=1)
        self._shared = share_vars_from
        places = [places] if isinstance(places, CPUPlace) else places
        count = places if isinstance(places, int) else len(places or ())
        self.replicas = share_vars_from.replicas if share_vars_from else count or cpu_num()
        return self

    def with_inference_optimize(self, config: AnalysisConfig | NativeConfig) -> CompiledProgram:
        """Let runs predict by the model that `config` names, on a feed of `core.PaddleTensor`s.

        Errors are those of `core.create_paddle_predictor`.
        """
        self.predictor = PaddlePredictor(config)
        return self

    _with_inference_optimize = with_inference_optimize

    @property
    def _is_inference(self) -> bool:
        return self.predictor is not None

    def run_over(self, scope: FluidScope) -> Run:
        """Return the run of this over `scope`, made on first use."""
        if isinstance(self.program.job, TrainerProgram):
            return connected(self.program, scope, self.replicas or 1, self._build, self._threading)
        if self not in scope.runs:
            scope.runs[self] = self._made(scope)
        run: Run = scope.runs[self]
        return run

    def steps_of(self, given: Feed | Sequence[Feed] | None) -> int:
        """Return the number of steps of a call; with `async_mode` each replica has its own."""
        if not self._is_async(given):
            return self._iterations
        return self._iterations * (self.replicas if given is None else len(given))

    def compute(
        self,
        run: Run,
        given: Feed | Sequence[Feed] | None,
        fetch: Sequence[str],
        merged: bool = True,
    ) -> list[Any]:
        """Compute what was given, or the next batches of the program's loaders.

        Returns the values of `fetch` in the last step. `run` is that of `run_over`.
        """
        if isinstance(run, ReplicatedRun) and self._is_async(given):
            return run_async(run, self._batches_apart(given), fetch, merged)
        return run_steps(run, self._next_batch(given), self._iterations, fetch, merged)

    def _is_async(self, given: Feed | Sequence[Feed] | None) -> bool:
        """Return True if each replica takes whole batches; one that is given is shared out."""
        wanted = self._build is not None and self._build.async_mode and self.replicas > 0
        is_local = not isinstance(self.program.job, TrainerProgram)
        is_apart = given is None or (len(given) > 0 and not isinstance(given, Mapping))
        return wanted and is_local and is_apart

    def _next_batch(self, given: Feed | Sequence[Feed] | None) -> Callable[[], Batch]:
        replicas = self.replicas or 1
        if given is None:  # a replica has one batch of a loader, or several as one
            return lambda: next_feed(self.program, replicas * joined_batches(self._build))
        return lambda: feed_of(given, self.program.graph, replicas)

    def _batches_apart(self, given: Feed | Sequence[Feed] | None) -> Iterator[Batch]:
        graph, joined = self.program.graph, joined_batches(self._build)
        for step in range(self.steps_of(given)):
            if given is None:
                yield next_feed(self.program, joined)
            else:
                assert not isinstance(given, Mapping)
                yield feed_of(given[step % len(given)], graph)

    def _made(self, scope: FluidScope) -> Run:
        if not self.replicas:
            return LocalRun(self.program, scope, self._build)
        shared = self._shared.run_over(scope) if self._shared else None
        shared = shared if isinstance(shared, ReplicatedRun) else None
        options = self._build, self._threading
        return ReplicatedRun(self.program, scope, self.replicas, *options, shared)


__all__ = ["BuildStrategy", "CompiledProgram", "ExecutionStrategy"]
