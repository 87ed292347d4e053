"""`FluidExecutor`: runs every kind of program that Fluid has.

a startup program      fills the scope with initial values
a program              runs in this process; trains if it has updates
a compiled program     runs in this process by replicas
a trainer's program    (transpiled) trains with pservers; the first run connects
a pserver's program    serves in this process until all trainers have completed
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from psrt.core.errors import DataError, ProgramError
from psrt.fluid.compiler import CompiledProgram
from psrt.fluid.feeding import next_feed
from psrt.fluid.framework import FluidProgram, default_main_program
from psrt.fluid.names import CPUPlace, dtype_name, narrow_name
from psrt.fluid.running import (
    Feed,
    Fetch,
    FetchedRates,
    FetchedTensors,
    FetchHandler,
    FluidScope,
    LoDTensor,
    PeriodicReport,
    Run,
    TimedReport,
    bound_blas,
    chosen,
    connected,
    disconnect,
    feed_of,
    global_scope,
    initialise,
    keep_fed,
    names_of,
    rates_alone,
    returned,
    run_steps,
    run_watched,
    scope_guard,
    sequential,
)
from psrt.partition.transpiler import PserverProgram, TrainerProgram

AnyProgram: TypeAlias = FluidProgram | CompiledProgram
Handler: TypeAlias = Callable[[Sequence[Any]], None] | FetchHandler


class NoDatasetError(ProgramError, RuntimeError):
    """A run over a dataset was given none."""


class Batches(Protocol):
    """Interface of datasets for `train_from_dataset`."""

    def batches(self) -> Iterable[Feed]:
        """Return the feeds, one per batch."""
        ...


class FluidExecutor:
    """Runs programs in the order of its calls; `place` is the CPU."""

    def __init__(self, place: CPUPlace | None = None) -> None:
        bound_blas()
        self.place = place or CPUPlace()
        self._connected: list[FluidProgram] = []

    def run(
        self,
        program: AnyProgram | None = None,
        feed: Feed | Sequence[Feed] | None = None,
        fetch_list: Sequence[Fetch] | Fetch | None = None,
        feed_var_name: str = "feed",
        fetch_var_name: str = "fetch",
        scope: FluidScope | None = None,
        return_numpy: bool = True,
        use_program_cache: bool = False,
        return_merged: bool = True,
    ) -> list[Any]:
        """Compute one batch; returns the values of `fetch_list` in Fluid's shapes.

        Without `feed` the batch comes from the program's loaders, see `psrt.fluid.reader`; they
        raise `core.EOFException` at the end of their data. What is fed for a parameter or another
        var of the scope stays there. Ragged values are `psrt.Ragged`; with
        `return_numpy=False` all are `LoDTensor`. With `return_merged=False` each value is a list of
        the replicas' values. The other arguments have no effect. Raises `ProgramError` before the
        startup program has run.
        """
        program, scope = program or default_main_program(), chosen(scope)
        if isinstance(program, FluidProgram) and _has_no_step(program, feed):
            return _begin(program, scope, fetch_list)
        if isinstance(program, CompiledProgram):
            if program.predictor is not None:
                tensors: Any = feed or ()
                return program.predictor.run(tensors)
            if program.is_dry:
                return []
        return self._computed(program, scope, feed, fetch_list, return_numpy, return_merged)

    def _computed(
        self,
        program: AnyProgram,
        scope: FluidScope,
        feed: Feed | Sequence[Feed] | None,
        fetch_list: Sequence[Fetch] | Fetch | None,
        return_numpy: bool,
        merged: bool,
    ) -> list[Any]:
        part = _part_of(program)
        feed = keep_fed(feed, part.graph, scope, isinstance(part.job, TrainerProgram))
        rates = FetchedRates(fetch_list)
        fetched = FetchedTensors(part, rates.vars, not return_numpy, merged)
        run = self._run_of(program, scope)
        if isinstance(program, CompiledProgram):
            values = program.compute(run, feed, fetched.names, merged)
            scope.steps[part] += program.steps_of(feed)
        else:
            batch = next_feed(part) if feed is None else feed_of(feed, part.graph)
            values = run_steps(run, lambda: batch, 1, fetched.names, merged)
            scope.steps[part] += 1
        return rates.beside(fetched.of(returned(values), scope), scope.steps[part] - 1)

    def train_from_dataset(
        self,
        program: AnyProgram | None = None,
        dataset: Batches | None = None,
        scope: FluidScope | None = None,
        thread: int = 0,
        debug: bool = False,
        fetch_list: Sequence[Fetch] | None = None,
        fetch_info: Sequence[str] | None = None,
        print_period: int = 100,
        fetch_handler: Handler | None = None,
    ) -> None:
        """Run every batch of `dataset`; print fetched values every `print_period` batches.

        `fetch_info` holds their titles. A function `fetch_handler` receives them instead; a
        `FetchHandler` receives its own vars by time. `debug`
        prints op times, the share of reading and examples per second at the end. `thread` has no
        effect: set it in the dataset. For replicas pass a CompiledProgram. Raises `ProgramError`,
        a `RuntimeError` too, without a dataset.
        """
        if dataset is None:
            raise NoDatasetError("dataset is need and should be initialized")
        program, scope = program or default_main_program(), chosen(scope)
        part = _part_of(program)
        if isinstance(fetch_handler, FetchHandler):
            report: PeriodicReport | TimedReport = TimedReport(fetch_handler)
        else:
            report = PeriodicReport(
                names_of(fetch_list, part.current), fetch_info, print_period, fetch_handler
            )
        feeds = (feed_of(feed, part.graph) for feed in dataset.batches())
        run = self._run_of(program, scope)

        def step(values: list[Any]) -> None:
            scope.steps[part] += 1
            report.step(values)

        if debug:
            print(run_watched(run, feeds, report.names, step))
        else:
            run.run_from(feeds, report.names, step)

    def infer_from_dataset(
        self,
        program: AnyProgram | None = None,
        dataset: Batches | None = None,
        scope: FluidScope | None = None,
        thread: int = 0,
        debug: bool = False,
        fetch_list: Sequence[Fetch] | None = None,
        fetch_info: Sequence[str] | None = None,
        print_period: int = 100,
        fetch_handler: Handler | None = None,
    ) -> None:
        """Run every batch of `dataset` forward only; arguments are those of training."""
        part = _part_of(program or default_main_program())
        self.train_from_dataset(
            *(part.for_test(), dataset, scope, thread, debug),
            *(fetch_list, fetch_info, print_period, fetch_handler),
        )

    def close(self) -> None:
        """Complete every trainer that this executor has connected."""
        while self._connected:
            disconnect(self._connected.pop())

    def _run_of(self, program: AnyProgram, scope: FluidScope) -> Run:
        part = _part_of(program)
        if isinstance(part.job, TrainerProgram) and part not in self._connected:
            self._connected.append(part)
        if isinstance(program, CompiledProgram):
            return program.run_over(scope)
        if not isinstance(program.job, TrainerProgram):
            return sequential(program, scope)
        return connected(program, scope)


Executor = FluidExecutor  # its name in PaddlePaddle


def as_numpy(tensor: Any) -> Any:
    """Return fetched tensors as arrays, in lists, too; raises `DataError` for lists of values."""
    if isinstance(tensor, list | tuple):
        return [as_numpy(part) for part in tensor]
    if isinstance(tensor, LoDTensor) and tensor.lod():
        raise DataError(
            "as_numpy was given a tensor with a LoD, whose lengths an array does not have.",
            hint="np.array(tensor) is its values.",
        )
    return np.asarray(tensor)


def _fetch_var(name: Any, scope: FluidScope | None = None, return_numpy: bool = True) -> Any:
    """Return what a scope holds for a var, by default the global one.

    Raises `ProgramError` for a var without a value.
    """
    found = chosen(scope)[name if isinstance(name, str) else name.name]
    return found if return_numpy else LoDTensor.of(found)


def _as_lodtensor(data: Any, place: CPUPlace, dtype: Any = None) -> LoDTensor:
    """Return an array as a tensor, or a number as one of `dtype`, which a number must have."""
    if isinstance(data, int | float):
        assert dtype is not None, f"The number {data} was given without a dtype."
        data = np.array([data], narrow_name(dtype) or dtype_name(dtype))
    return LoDTensor.of(data)


def _part_of(program: AnyProgram) -> FluidProgram:
    """The program itself, or the one that was compiled."""
    return program if isinstance(program, FluidProgram) else program.program


def _has_no_step(program: FluidProgram, feed: object) -> bool:
    """Return True for a pserver's program, and for one without ops and batches: a startup one."""
    is_empty = not (program.graph.ops or program.origin.loaders or feed)
    return is_empty or isinstance(program.job, PserverProgram)


def _begin(
    program: FluidProgram, scope: FluidScope, fetch_list: Sequence[Fetch] | Fetch | None
) -> list[Any]:
    """Run a program without a step; returns learning rates among the fetches."""
    if isinstance(program.job, PserverProgram):
        from psrt.pserver.process import serve

        serve(program.job, **program.serve_settings)
        return []
    initialise(program, scope)
    return rates_alone(fetch_list, scope, program)


__all__ = ["Executor", "FetchHandler", "FluidExecutor", "global_scope", "scope_guard"]
