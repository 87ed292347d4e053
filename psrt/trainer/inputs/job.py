"""A job: its program, the data vars of each table, and the layout of its files.

`load_job` runs the user's `build()` once; the rest follows from the program. Every trainer builds
the job from the same file and must arrive at the same program; the handshake checks the plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from psrt.config.sections import JobConfig
from psrt.core.errors import ConfigError, ProgramError
from psrt.core.specs import TableSpec
from psrt.data.slots import Batch, Slot, shaped, slot_of
from psrt.executor.memory import lookups_by_table
from psrt.graph import builder
from psrt.graph.model import Model
from psrt.graph.program import Program
from psrt.partition.dispatchers import dispatcher_named
from psrt.partition.plan import PartitionPlan, build_plan
from psrt.trainer.inputs.program_file import call_build, load_build
from psrt.trainer.inputs.table_changes import change_tables


@dataclass(frozen=True)
class Job:
    """`tables` maps each sparse table to the data vars looked up in it; `slots` are the fields of
    a line of its data files."""

    config: JobConfig
    program: Program
    model: Model
    tables: Mapping[str, tuple[str, ...]]
    slots: tuple[Slot, ...]

    def shaped(self, batch: Batch) -> Batch:
        """A batch as read from files, (rows, values), in the shapes the data vars declare."""
        return shaped(self.model.feeds, batch)

    def plan(self, endpoints: Sequence[str]) -> PartitionPlan:
        """Return the placement of all parameters on the pservers at `endpoints`."""
        if not endpoints:
            raise ConfigError(
                "no pservers were named.",
                hint="Give --endpoints host:port,host:port, the same on every trainer.",
            )
        self.check_trains()
        partition = self.config.partition
        return build_plan(
            self.program.parameters.values(),
            endpoints,
            slice_var_up=partition.slice_var_up,
            min_block_size=partition.min_block_size,
            max_block_size=partition.max_block_size,
            dispatcher=dispatcher_named(partition.split_method),
            mode=self.config.communication,
        )

    def check_trains(self) -> None:
        """Raise `ConfigError` if the program has no parameter to train."""
        if not self.program.trained():
            raise ConfigError(
                f"the program of job {self.config.name}, {self.config.program}, trains nothing: "
                "its psrt.Model has no optimizer, and nothing else calls minimize.",
                hint="Add optimizer=psrt.optimizer.Adagrad(0.05), or another, to psrt.Model.",
            )

    def whole_tables(self) -> list[TableSpec]:
        """Return the specs of the trained parameters, neither sliced nor placed."""
        plan = build_plan(self.program.parameters.values(), ["all"], slice_var_up=False)
        return plan.specs_for("all")


def load_job(config: JobConfig) -> Job:
    """Import the job's Python file and build its program; every mistake names file and line."""
    path = config.program_path
    with builder.program(config.seed) as program:
        model = call_build(load_build(path), config.params, path)
    if not isinstance(model, Model):
        raise ProgramError(
            f"build() of {path} returned {type(model).__name__}, not psrt.Model.",
            hint="End it with `return psrt.Model(loss=..., optimizer=...)`.",
        )
    change_tables(program, config.tables, config.path)
    tables = {table: slots for table, slots in lookups_by_table(program).items() if slots}
    return Job(config, program, model, tables, tuple(slot_of(var) for var in model.feeds))
