"""`fleet` for pservers: one script, in which every process takes its part by its role.

    fleet.init(role_maker.PaddleCloudRoleMaker())
    fleet.distributed_optimizer(optimizer, strategy).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()         serves in this process until all workers have stopped
    else:
        fleet.init_worker()
        exe.run(fleet.startup_program)
        exe.run(fleet.main_program, feed, [loss])     or a CompiledProgram of it
        fleet.stop_worker()

Workers are trainers and servers are pservers. A worker connects at its first step, with the
replicas of that step. Calls out of order raise `ProgramError`, which names what comes first.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from typing import Any, NoReturn

from psrt.core.errors import ConfigError, ProgramError, UnavailableError
from psrt.data.datasets import Records, Scattering
from psrt.fluid import io
from psrt.fluid.executor import FluidExecutor
from psrt.fluid.framework import FluidProgram, default_main_program
from psrt.fluid.incubate.fleet.base.fleet_base import Fleet
from psrt.fluid.incubate.fleet.base.metrics import FleetMetrics
from psrt.fluid.incubate.fleet.base.role_maker import PaddleCloudRoleMaker, RoleMakerBase
from psrt.fluid.incubate.fleet.base.util import UtilBase
from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler.distributed_strategy import (
    TranspilerStrategy,
    strategy_of,
)
from psrt.fluid.incubate.fleet.parameter_server.distribute_transpiler.transpiler_optimizer import (
    ProgramPair,
    TranspilerOptimizer,
    parts_of,
)
from psrt.fluid.names import Variable, missing
from psrt.fluid.running import connected, disconnect, global_scope
from psrt.fluid.transpiler import DistributeTranspilerConfig
from psrt.fluid.updates import Optimizer
from psrt.pserver.checkpoints import complete_cuts
from psrt.rpc.hosts import split_endpoint
from psrt.storage.locate import directory_at
from psrt.trainer.training import Shrunk

__all__ = ["DistributedTranspiler", "fleet"]

log = logging.getLogger("psrt.fluid")

_INSTEAD = {
    "all_reduce": "fleet.util.all_reduce(array, mode) takes sums and extremes over all workers.",
    "shrink_sparse_table": "fleet.shrink() decays scores and drops rows by the "
    "psrt.tables.Lifecycle of each table.",
    "shrink_dense_table": "data_norm's sums are psrt's own state; nothing else of a dense table "
    "shrinks.",
    "save_cache_model": "Save the whole model: fleet.save_inference_model.",
    "load_model": "fluid.io.load_inference_model reads what fleet.save_inference_model wrote.",
}


class DistributedTranspiler(Fleet):
    """The class of `fleet`. A process has one role and uses it once; `init` begins anew."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: ProgramPair | None = None

    def init(self, role_maker: RoleMakerBase | None = None) -> None:
        """Determine the role of this process, by default from the launcher's variables.

        Raises `ConfigError` for a missing or wrong variable, and for a value that is no role maker.
        """
        role_maker = PaddleCloudRoleMaker() if role_maker is None else role_maker
        if not isinstance(role_maker, RoleMakerBase):
            raise ConfigError(
                f"fleet.init was given a {type(role_maker).__name__}, which is no role maker.",
                hint="Use role_maker.PaddleCloudRoleMaker().",
            )
        role_maker.generate_role()
        self._role, self._parts = role_maker, None

    # --- the program ------------------------------------------------------------------------------

    def distributed_optimizer(
        self,
        optimizer: Optimizer,
        strategy: TranspilerStrategy | DistributeTranspilerConfig | None = None,
    ) -> TranspilerOptimizer:
        """Return `optimizer` with a `minimize` that also makes this process's part of the cluster.

        Sync without a strategy. Raises `ConfigError` for another kind of strategy or optimizer.
        """
        return TranspilerOptimizer(optimizer, strategy, self._known, self._take)

    @property
    def main_program(self) -> FluidProgram:
        """The program of this process: a worker's trains, a server's serves."""
        return self._made.main

    @property
    def startup_program(self) -> FluidProgram:
        """The startup program: fills a worker's scope; a server's does nothing."""
        return self._made.startup

    # --- servers ----------------------------------------------------------------------------------

    def init_server(self, model_dir: str | None = None) -> None:
        """Begin with the newest cut in `model_dir`, or with the parameters that were saved there.

        Without it, tables compute initial values. Further cuts are written to a directory of cuts.
        Raises `DataError` for a directory that has neither a cut nor every parameter.
        """
        self._refuse_worker("init_server")
        program = self.main_program
        if model_dir and complete_cuts(directory_at(model_dir)):
            program.serve_settings = {"checkpoint_dir": model_dir, "resume": "latest"}
        elif model_dir:
            io.load_persistables(FluidExecutor(), model_dir, program)

    def run_server(self) -> None:
        """Serve until all workers have stopped; raises the error that ended the job before."""
        self._refuse_worker("run_server")
        FluidExecutor().run(self.main_program)

    # --- workers ----------------------------------------------------------------------------------

    def init_worker(self) -> None:
        """Allow this worker to train; its first step waits for the servers."""
        self._refuse_server("init_worker")
        assert self.main_program

    def barrier_worker(self) -> None:
        """Wait for every other worker to call it as often, or to stop.

        Before the first step it connects as `exe.run(fleet.main_program)` would, without replicas.
        """
        self._refuse_server("barrier_worker")
        self._connection().executor.barrier("fleet")

    def exchange_records(self, scattering: Scattering) -> deque[Records]:
        """Exchange records for `dataset.global_shuffle(fleet)`; connects as `barrier_worker` does.

        Other workers reach this one by the host of its endpoint, if the role maker was given it.
        """
        self._refuse_server("exchange_records")
        known = self._known.get_trainer_endpoints()[self.worker_index() :]
        host = split_endpoint(known[0])[0] if known else ""
        shuffled: deque[Records] = self._connection().executor.exchange_records(scattering, host)
        return shuffled

    def sum_records(self, count: int) -> int:
        """Return the sum over all workers, for `dataset.get_memory_data_size(fleet)`."""
        self._refuse_server("sum_records")
        total: int = self._connection().executor.sum_records(count)
        return total

    def gather_numbers(self, numbers: Sequence[float]) -> list[list[float]]:
        """Return the numbers of every worker, for `fleet.util` and `fleet.metrics`."""
        self._refuse_server("gather_numbers")
        found: list[list[float]] = self._connection().executor.gather_numbers(numbers)
        return found

    @property
    def util(self) -> UtilBase:
        """Sums, extremes and lists over all workers."""
        return UtilBase(self)

    @property
    def metrics(self) -> FleetMetrics:
        """Metrics over the examples of all workers."""
        return FleetMetrics(self.util)

    def shrink(self, threshold: int | None = None) -> dict[str, Shrunk]:
        """Decay the scores of all sparse tables and evict rows, by each table's `Lifecycle`.

        Returns the evicted rows by table. One worker calls it. Fluid's `threshold`, days without a
        push, is a limit of the table in psrt and raises `ConfigError`.
        """
        self._refuse_server("shrink")
        if threshold is not None:
            raise ConfigError(
                f"fleet.shrink was given the threshold {threshold}; tables of psrt have their own.",
                hint="Declare ParamAttr(table=psrt.tables.TableOptions(lifecycle=psrt.tables."
                "Lifecycle(ttl_days=…))) of the embedding.",
            )
        shrunk: dict[str, Shrunk] = self._connection().executor.shrink()
        return shrunk

    def stop_worker(self) -> None:
        """Send remaining gradients, pull the last parameters, and complete this worker.

        A worker that has made no step connects for it, since servers wait for every worker. Where
        that does not succeed and the job does not wait for servers (`wait_port` False), there is
        nothing to complete; a warning says so.
        """
        self._refuse_server("stop_worker")
        program = self.main_program
        try:
            self._connection()
        except UnavailableError as error:
            if program.job.wait_port:
                raise
            log.warning("stop_worker: this worker has reached no server. %s", error)
            return
        disconnect(program)

    def save_persistables(
        self, executor: FluidExecutor, dirname: str, main_program: FluidProgram | None = None
    ) -> None:
        """Write the pservers' parameters; one worker calls it, before it stops."""
        self._refuse_server("save_persistables")
        io.save_persistables(executor, dirname, self._own(main_program))

    def save_inference_model(
        self,
        executor: FluidExecutor,
        dirname: str,
        feeded_var_names: Sequence[str],
        target_vars: Sequence[Variable],
        main_program: FluidProgram | None = None,
    ) -> None:
        """Write a model that needs no servers; one worker calls it, before it stops."""
        self._refuse_server("save_inference_model")
        program = self._own(main_program)
        io.save_inference_model(dirname, feeded_var_names, target_vars, executor, program)

    # --- inside -----------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> NoReturn:
        raise missing("fleet", name, [n for n in dir(type(self)) if n[0] != "_"], _INSTEAD)

    @property
    def _made(self) -> ProgramPair:
        if self._parts is None:
            raise ProgramError(
                "fleet has no program yet.",
                hint="Call fleet.distributed_optimizer(optimizer, strategy).minimize(loss) first.",
            )
        return self._parts

    def _take(self, parts: ProgramPair) -> None:
        self._parts = parts

    def _transpile(self, config: DistributeTranspilerConfig) -> None:
        """Cut the default main program again, by another config; raises for what is none."""
        if not isinstance(config, DistributeTranspilerConfig):
            raise ConfigError(f"fleet._transpile was given {config!r}, which is no config.")
        self._take(parts_of(default_main_program(), None, strategy_of(config), self._known))

    def _connection(self) -> Any:
        program = self.main_program
        return program.connection or connected(program, global_scope())

    def _own(self, program: FluidProgram | None) -> FluidProgram:
        if program is not None and not isinstance(program, FluidProgram):
            raise ConfigError(
                f"fleet cannot save a {type(program).__name__}.",
                hint="Save the program it was made of, or fleet.main_program.",
            )
        return self.main_program if program is None else program


fleet = DistributedTranspiler()
