"""Programs by Fluid's names: one that computes, and one that gives its parameters first values.

A `FluidProgram` holds a `psrt.graph.Program` and the builder that writes it. Layers write into the
default main program and note it in the default startup program; running a startup program fills the
scope with the initial values of every program noted there. Both defaults belong to the process.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from psrt.core.errors import ProgramError
from psrt.fluid.names import FluidParameter, Variable, nearest, unique_name, unwrapped
from psrt.graph.builder import Builder
from psrt.graph.program import Op, Var
from psrt.graph.program import Program as Graph


@dataclasses.dataclass(frozen=True)
class MemoryReuse:
    """What `memory_optimize` asked for: gradients left alone, and vars that will be fetched."""

    skip_grads: bool = False
    keep: frozenset[str] = frozenset()


class FluidProgram:
    """Fluid's program of one block.

    `initialises` are the programs whose parameters a run of this one fills in: it is a startup
    program then. `memory` is set by `memory_optimize`; `job` by the transpiler, which makes it the
    part of one trainer or one pserver, and `connection` once the trainer has reached its pservers,
    each call to which may take `call_timeout_s`.
    `loaders` give its runs what they are not fed; `rows_from` gives rows of tables that are in no
    scope. `origin` is what it was cloned from.
    """

    def __init__(self, graph: Graph | None = None) -> None:
        self.graph = Graph() if graph is None else graph
        self.builder = Builder(self.graph)
        self.initialises: list[FluidProgram] = []
        self.persistables: set[str] = set()
        self.memory: MemoryReuse | None = None
        self.job: Any = None
        self.connection: Any = None
        self.call_timeout_s = 180.0
        self.origin: FluidProgram = self
        self.loaders: list[Any] = []
        self.rows_from: Any = None
        self._variables: dict[str, Variable] = {}
        self._layer_names: set[str] = set()
        self._test: FluidProgram | None = None

    @property
    def random_seed(self) -> int:
        """Initial values and random layers follow from it; 0 is a seed like any other."""
        return self.graph.seed

    @random_seed.setter
    def random_seed(self, seed: int) -> None:
        self.graph.seed = int(seed)

    @property
    def num_blocks(self) -> int:
        return 1

    def global_block(self) -> FluidBlock:
        return FluidBlock(self)

    current_block = global_block

    def block(self, index: int) -> FluidBlock:
        if index:
            raise ProgramError(f"Block {index} was asked for, but a program of psrt has one, 0.")
        return FluidBlock(self)

    def variable(self, name: str) -> Variable:
        """The var of this name; raises `ProgramError` naming the nearest."""
        if name not in self.graph.vars:
            hint = nearest(name, self.graph.vars)
            raise ProgramError(f"The program has no var {name}.", hint=hint)
        if name not in self._variables:
            kind = FluidParameter if name in self.graph.parameters else Variable
            self._variables[name] = kind(self, name)
        return self._variables[name]

    def list_vars(self) -> Iterator[Variable]:
        return (self.variable(name) for name in list(self.graph.vars))

    def all_parameters(self) -> list[Variable]:
        return [self.variable(name) for name in self.graph.parameters]

    def clone(self, for_test: bool = False) -> FluidProgram:
        """A program over the same parameters; `for_test` computes forward, with dropout off."""
        copy = FluidProgram(self.graph.clone(for_test))
        copy.builder.asked.update(self.builder.asked)
        copy.persistables |= self.persistables
        copy.rows_from, copy.origin = self.rows_from, self.origin
        if not for_test:
            copy.memory, copy.job = self.memory, self.job
        return copy

    def for_test(self) -> FluidProgram:
        """The clone for tests, made once."""
        if self._test is None:
            self._test = self.clone(for_test=True)
        return self._test

    def to_string(self, throw_on_error: bool = True, with_details: bool = False) -> str:
        """The text form of psrt, one var, parameter or op a line; the arguments are not read."""
        return self.graph.to_text()

    def __str__(self) -> str:
        return self.to_string()

    # --- writing ---

    @contextmanager
    def written_into(self, name: str = "") -> Iterator[None]:
        """Layer functions of psrt write here; the first layer is called `name`, if there is one."""
        startup = default_startup_program()
        if self not in startup.initialises:
            startup.initialises.append(self)
        if not self.graph.seed:
            self.graph.seed = startup.graph.seed
        self.builder.counts = unique_name.counts()
        with self.builder.written_into(self._free(name)):
            yield

    def call(
        self, function: Callable[..., Any], *args: Any, layer_name: str = "", **options: Any
    ) -> Any:
        """Call a layer function with variables for vars; variables come back."""
        with self.written_into(layer_name):
            given = {name: unwrapped(value) for name, value in options.items()}
            return self.wrapped(function(*unwrapped(args), **given))

    def _free(self, name: str) -> str:
        """A layer name that was given before gets a number, so that nothing is shared by it."""
        if name and name in self._layer_names:
            return self.builder.unique(name)
        self._layer_names.add(name)
        return name

    def wrapped(self, value: Any) -> Any:
        if isinstance(value, Var):
            return self.variable(value.name)
        if isinstance(value, list):
            return [self.wrapped(item) for item in value]
        if isinstance(value, tuple):
            return tuple(self.wrapped(item) for item in value)
        return value


Program = FluidProgram  # its name in PaddlePaddle


class FluidBlock:
    """The one block of a program: its vars and ops."""

    idx = 0

    def __init__(self, program: FluidProgram) -> None:
        self.program = program

    @property
    def ops(self) -> Sequence[Op]:
        return tuple(self.program.graph.ops)

    @property
    def vars(self) -> dict[str, Variable]:
        return {variable.name: variable for variable in self.program.list_vars()}

    def var(self, name: str) -> Variable:
        return self.program.variable(name)

    def has_var(self, name: str) -> bool:
        return name in self.program.graph.vars

    def all_parameters(self) -> list[Variable]:
        return self.program.all_parameters()


Block = FluidBlock  # its name in PaddlePaddle


@dataclasses.dataclass
class _Defaults:
    main: FluidProgram
    startup: FluidProgram


_defaults = _Defaults(FluidProgram(), FluidProgram())


def default_main_program() -> FluidProgram:
    """What layers write into."""
    return _defaults.main


def default_startup_program() -> FluidProgram:
    """What initialises the parameters of the programs that layers write into."""
    return _defaults.startup


def switch_main_program(program: FluidProgram) -> FluidProgram:
    """Make another program the default; returns the one before."""
    before, _defaults.main = _defaults.main, program
    return before


def switch_startup_program(program: FluidProgram) -> FluidProgram:
    """Make another startup program the default; returns the one before."""
    before, _defaults.startup = _defaults.startup, program
    return before


@contextmanager
def program_guard(
    main_program: FluidProgram, startup_program: FluidProgram | None = None
) -> Iterator[None]:
    """Layers called in the block write into these; without a second, the startup program stays."""
    main = switch_main_program(main_program)
    startup = switch_startup_program(startup_program or default_startup_program())
    try:
        yield
    finally:
        switch_main_program(main)
        switch_startup_program(startup)


@contextmanager
def name_scope(prefix: str | None = None) -> Iterator[None]:
    """Fluid's grouping of ops for drawings; names stay as they are."""
    yield


def in_dygraph_mode() -> bool:
    """There is no other mode than that of programs."""
    return False


__all__ = [
    "FluidParameter",
    "FluidProgram",
    "Program",
    "Variable",
    "default_main_program",
    "default_startup_program",
    "in_dygraph_mode",
    "name_scope",
    "program_guard",
    "switch_main_program",
    "switch_startup_program",
]
