"""The sequential executor: the closures of a compiled program, run in order.

An executor belongs to one thread. The error of a failing step names op, layer and the user's line.
Fetched arrays are copies; gradients are not, see `Executor.gradients`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from psrt.core.tensors import Ragged
from psrt.core.types import Array
from psrt.executor.compute import go_on
from psrt.executor.memory import RowBatch, RowSupply, Scope
from psrt.executor.ports import Gradient, GradSink, ParamSource
from psrt.executor.profiling import Profiler
from psrt.executor.program.compiled import Compiled
from psrt.executor.program.deprecated import DeprecatedNames
from psrt.executor.program.derived import DerivedIds, fed_vars
from psrt.executor.program.feeds import Intake, check_is_batch
from psrt.executor.program.fetches import Fetch, Fetches, copy_of
from psrt.executor.program.finite_checks import NO_CHECKS, FiniteChecks, add_checks
from psrt.executor.program.gradient_hooks import steps_with_hooks
from psrt.executor.program.preparation import prepare
from psrt.executor.program.scope_binding import ScopeBinding
from psrt.executor.program.update_states import UpdateStates
from psrt.executor.strategies import BuildStrategy
from psrt.graph.program import ROLES, Program, Role, Var


class Executor(DeprecatedNames):
    """Runs one program over one scope.

    `source` returns rows of sparse tables that are not bound for a step; without a source they come
    from the scope. `sink` receives the gradients after each backward. `dtype` "float64" computes in
    double precision, for gradient checks; the scope must then hold float64 parameters.
    `build_strategy` selects passes that save time and memory; `keep` then names the vars to fetch.
    `first_example` counts the examples of a step on the trainers before this one: random ops draw
    for the whole step. `checks` are values that must be finite: a run ends with `ProgramError`
    NOT_FINITE where they are not. A run that fails counts as a step, too.
    """

    def __init__(
        self,
        program: Program,
        scope: Scope,
        source: ParamSource | None = None,
        sink: GradSink | None = None,
        dtype: str = "float32",
        build_strategy: BuildStrategy | None = None,
        keep: Sequence[str | Var] = (),
        first_example: int = 0,
        checks: FiniteChecks = NO_CHECKS,
    ) -> None:
        build = build_strategy or BuildStrategy()
        build.freeze()
        prepared = prepare(program, build, keep)
        self.program, self.scope, self.source = program, scope, source
        self._compiled = Compiled(prepared.program, dtype, memory=prepared.memory)
        add_checks(self._compiled, checks)
        self._cells = self._compiled.cells
        self._scope_binding = ScopeBinding(self._compiled)
        self._compiled.context.first_example = first_example
        self._derived = DerivedIds(program, first_example)
        self._intake = Intake(fed_vars(program), self._cells)
        self._supply = RowSupply(program, scope, source)
        self._fetches = Fetches(program, prepared)
        self._plain_steps = self._compiled.steps
        self.sink = sink

    def run(
        self,
        feed: Mapping[str, Array | Ragged],
        fetch: Fetch = (),
        rows: Mapping[str, RowBatch] | None = None,
        roles: Sequence[Role] = ("forward", "backward"),
    ) -> list[Array | Ragged]:
        """Run one batch through the ops of `roles`; returns copies of the vars in `fetch`.

        `feed` holds every data var; batches may differ in size. `rows` binds fetched rows to sparse
        tables. `roles` ("forward",) predicts; adding "optimize" trains here, without pservers.
        """
        if self.profiler is None:
            return self._run(feed, fetch, rows or {}, roles)
        with self.profiler.span("run", "step"):
            return self._run(feed, fetch, rows or {}, roles)

    @property
    def profiler(self) -> Profiler | None:
        """Records every op that runs while set; None stops recording."""
        return self._compiled.profiler

    @profiler.setter
    def profiler(self, profiler: Profiler | None) -> None:
        self._compiled.profiler = profiler

    def _run(
        self,
        feed: Mapping[str, Array | Ragged],
        fetch: Fetch,
        rows: Mapping[str, RowBatch],
        roles: Sequence[Role],
    ) -> list[Array | Ragged]:
        names = self._fetches.names_of(fetch, roles)
        self._scope_binding.bind(self.scope, roles)
        if "forward" in roles:
            check_is_batch(feed)
            self._supply.check_bound(rows)
            whole = self._derived.extend(feed, self._compiled.context.step)
            self._bind_rows(self._intake.load(whole), rows)
        hands_over = "backward" in roles and "optimize" not in roles
        self._compiled.steps = self._hooked_steps if hands_over else self._plain_steps
        if hands_over:
            self._compiled.swap_gradients()
        try:
            for role in ROLES:
                if role in roles or (role == "clip_and_decay" and "backward" in roles):
                    self._compiled.run(role)
        finally:
            self._compiled.context.step += 1
        if self.sink is not None and "backward" in roles:
            self.sink.push(self.gradients())
        return [self._fetched(name) for name in names]

    @property
    def sink(self) -> GradSink | None:
        """The exit of gradients; None keeps them here."""
        return self._sink

    @sink.setter
    def sink(self, sink: GradSink | None) -> None:
        self._sink, self._compiled.steps = sink, self._plain_steps
        hooked = None if sink is None else steps_with_hooks(self._compiled, sink)
        self._hooked_steps = hooked or self._plain_steps

    def continue_from(self, other: Executor) -> None:
        """Share optimizer state and step counts with an executor of the same parameters."""
        go_on(self._compiled.updates, other._compiled.updates)
        self._compiled.context.step = other._compiled.context.step

    def begin_at(self, step: int) -> None:
        """Draw random numbers of the next run as those of step `step`, from 0."""
        self._compiled.context.step = step

    def gradients(self) -> dict[str, Gradient]:
        """Gradients of the last backward by parameter name; of sparse tables as SelectedRows.

        They are views of two memories that alternate: the arrays stay unchanged during the next
        backward, and the one after it overwrites them. Copy what is kept for more than one step.
        A run with "optimize" uses one memory only, which the next run overwrites.
        """
        return self._compiled.gradients()

    def update(self, gradients: Mapping[str, Array]) -> None:
        """Run the update ops of the program, of dense parameters by these gradients, by name.

        The arrays are read, not copied. The step ends here that `run` began without "optimize".
        """
        self._scope_binding.bind(self.scope, ("optimize",))
        self._compiled.set_gradients(gradients)
        self._compiled.run("optimize")

    def parameters_changed(self, other_steps: int) -> None:
        """Arrays of the scope have new values, from `other_steps` mini-batches of other trainers.

        Learning-rate schedules count these in addition to the updates made here.
        """
        self._compiled.count_others(other_steps)

    @property
    def update_states(self) -> UpdateStates:
        """The optimizer states of parameters that are updated here."""
        return UpdateStates([self._compiled])

    def _fetched(self, name: str) -> Array | Ragged:
        if self.program.vars[name].kind == "parameter":
            return self.scope[name].copy()
        return copy_of(self._cells[name])

    def _bind_rows(self, feed: Mapping[str, Array | Ragged], bound: Mapping[str, RowBatch]) -> None:
        for name, rows in self._compiled.rows.items():
            if name in bound:
                rows.bind(bound[name], self._compiled.dtype)
            elif rows.parameter.sparse:
                rows.bind(self._supply.batch(name, feed), self._compiled.dtype)
            else:
                rows.bind_whole(self.scope[name])
