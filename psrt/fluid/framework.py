"""Programs by Fluid's names: one that computes, and one that initialises its parameters.

A `FluidProgram` holds a `psrt.graph.Program` and the builder that writes it. Layers write into the
default main program and register it in the default startup program; running a startup program fills
the scope with the initial values of every registered program. Both defaults belong to the process.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from psrt.core.errors import ProgramError
from psrt.core.hints import did_you_mean
from psrt.core.types import Array
from psrt.fluid.block import FluidBlock, FluidOperator, MemoryReuse, OpProtoHolder, ProgramBytes
from psrt.fluid.names import (
    FluidParameter,
    Variable,
    grad_var_name,
    in_dygraph_mode,
    known_name,
    name_scope,
    unique_name,
    unwrapped,
)
from psrt.fluid.names import dtype_number as convert_np_dtype_to_dtype_
from psrt.graph.builder import Builder
from psrt.graph.program import Program as Graph
from psrt.graph.program import Var
from psrt.graph.prune import prune


class FluidProgram:
    """Fluid's `Program`, of one block.

    `initialises` are the programs whose parameters a run of this one, a startup program, fills in.
    `memory` is set by `memory_optimize`; `job` by the transpiler, which makes it the part of one
    trainer or one pserver; `connection` once the trainer has reached its pservers, each call to
    which may take `call_timeout_s` seconds. `loaders` supply what a run is not fed; `rows_from`
    supplies rows of tables that are in no scope. `tensors` are names without a var of their own, of
    a dtype, `narrow` their dtypes that psrt has only wider; `newest` is the var that a name stands
    for, the one assigned last. `serve_settings` are a pserver's. `guards` are the conditions of the
    branches that ops are written into, `loops` the loops, and `steps` counts the recurrences.
    `initial_arrays` are the first values of parameters that begin with an array, `lod_levels` those
    of vars that are fed lists of lists. `has_open_batch` is set by a data var with any batch;
    `fixed_batches` are others by its size. `origin` is the program it was cloned from, or, of a
    pserver's, the transpiled one.
    """

    def __init__(self, graph: Graph | None = None) -> None:
        self.graph = Graph() if graph is None else graph
        self.builder = Builder(self.graph)
        self.initialises: list[FluidProgram] = []
        self.persistables: set[str] = set()
        self.memory: MemoryReuse | None = None
        self.job: Any = None
        self.connection: Any = None
        self.call_timeout_s, self.steps = 180.0, 0
        self.origin: FluidProgram = self
        self.loaders: list[Any] = []
        self.rows_from: Any = None
        self.tensors: dict[str, str] = {}
        self.narrow: dict[str, str] = {}
        self.guards: list[Variable] = []
        self.loops: list[Any] = []
        self.initial_arrays: dict[str, Array] = {}
        self.lod_levels: dict[str, int] = {}
        self.newest: dict[str, str] = {}
        self.has_open_batch = False
        self.fixed_batches: dict[int, str] = {}
        self.serve_settings: dict[str, str] = {}
        self._variables: dict[str, Variable] = {}
        self._layer_names: set[str] = set()
        self._test: FluidProgram | None = None

    @property
    def random_seed(self) -> int:
        """Seed of initial values and random layers; 0 is a seed like any other."""
        return self.graph.seed

    @random_seed.setter
    def random_seed(self, seed: int) -> None:
        self.graph.seed = int(seed)

    @property
    def num_blocks(self) -> int:
        """1: a program of psrt has one block."""
        return 1

    def global_block(self) -> FluidBlock:
        """Return the block."""
        return FluidBlock(self)

    current_block = global_block

    @property
    def blocks(self) -> list[FluidBlock]:
        """The block, as a list."""
        return [FluidBlock(self)]

    def block(self, index: int) -> FluidBlock:
        """Return block 0; raises `ProgramError` for another index."""
        if index:
            raise ProgramError(f"A program of psrt has block 0 only, not {index}.")
        return FluidBlock(self)

    def variable(self, name: str) -> Variable:
        """Return the var of this name; raises `ProgramError` naming the nearest."""
        name = known_name(name, self.graph)
        if name not in self.graph.vars and name not in self.tensors:
            for var in self._filled():
                if var.name == name:
                    return var
            hint = did_you_mean(name, self.graph.vars)
            raise ProgramError(f"The program has no var {name}.", hint=hint)
        if name not in self._variables:
            kind = FluidParameter if name in self.graph.parameters else Variable
            self._variables[name] = kind(self, name)
        return self._variables[name]

    def current(self, name: str) -> str:
        """Return the name of the var that a tensor stands for, or the name itself."""
        return self.newest.get(name, known_name(name, self.graph))

    def assign(self, tensor: Variable, value: Variable) -> Variable:
        """Let `tensor` stand for the var of `value` from here on; returns the tensor.

        The name of a temporary var of its own may be assigned anew, too.
        """
        self.newest[tensor.name] = value.var.name
        return tensor

    def tensor(self, dtype: str, name: str) -> Variable:
        """Return a new tensor that stands for no var yet."""
        self.tensors[name] = dtype
        return self._variables.setdefault(name, Variable(self, name))

    def list_vars(self) -> Iterator[Variable]:
        """Iterate over all vars; those of a startup program are the vars that it fills."""
        yield from [self.variable(name) for name in self.graph.vars]
        yield from self._filled()

    def _filled(self) -> Iterator[Variable]:
        for part in self.initialises:
            vars = part.graph.vars.values()
            yield from [part.variable(v.name) for v in vars if v.kind in ("parameter", "state")]

    def all_parameters(self) -> list[Variable]:
        """Return the parameters in order of declaration."""
        return [self.variable(name) for name in self.graph.parameters]

    def clone(self, for_test: bool = False) -> FluidProgram:
        """Return a program over these parameters; `for_test` computes forward, without dropout."""
        copy = FluidProgram(self.graph.clone(for_test))
        copy.builder.declared.update(self.builder.declared)
        copy.persistables |= self.persistables
        copy.rows_from, copy.origin = self.rows_from, self.origin
        copy.tensors, copy.newest = dict(self.tensors), dict(self.newest)
        copy.lod_levels = dict(self.lod_levels)
        if not for_test:
            copy.memory, copy.job = self.memory, self.job
        return copy

    def _prune_with_input(
        self, feeded_var_names: Sequence[str], targets: Sequence[Variable | str]
    ) -> FluidProgram:
        """Return a program that computes `targets` from these data vars, as a saved model does."""
        names = [self.current(str(getattr(target, "name", target))) for target in targets]
        return FluidProgram(prune(self.graph, names, feeded_var_names))

    def for_test(self) -> FluidProgram:
        """Return the clone for tests, made on first use."""
        if self._test is None:
            self._test = self.clone(for_test=True)
        return self._test

    def to_string(self, throw_on_error: bool = True, with_details: bool = False) -> str:
        """Return psrt's text form, one var, parameter or op a line; arguments have no effect."""
        return self.graph.to_text()

    def __str__(self) -> str:
        return self.to_string()

    @property
    def desc(self) -> ProgramBytes:
        """The program as bytes: `desc.serialize_to_string()`."""
        return ProgramBytes(self.graph)

    @staticmethod
    def parse_from_string(binary_str: bytes) -> FluidProgram:
        """Return the program of these bytes; raises `ProgramError` for others."""
        try:
            return FluidProgram(Graph.from_text(binary_str.decode()))
        except UnicodeDecodeError as error:
            raise ProgramError("Program.parse_from_string was given no program.") from error

    @contextmanager
    def _lr_schedule_guard(self, is_with_opt: bool = False) -> Iterator[None]:
        """Without effect: the ops of a learning rate are ops like any other."""
        yield

    # --- writing ---

    @contextmanager
    def written_into(self, name: str = "") -> Iterator[None]:
        """Let layer functions of psrt write here; the first layer is called `name`, if given."""
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
        """Call a layer function, with variables converted to vars and back."""
        with self.written_into(layer_name):
            given = {name: unwrapped(value) for name, value in options.items()}
            return self.wrapped(function(*unwrapped(args), **given))

    def _free(self, name: str) -> str:
        """Return a layer name, numbered if it was used before, so that nothing is shared by it."""
        if name and name in self._layer_names:
            return self.builder.unique(name)
        self._layer_names.add(name)
        return name

    def wrapped(self, value: Any) -> Any:
        """Return variables for vars, in lists and tuples, too."""
        if isinstance(value, Var):
            return self.variable(value.name)
        if isinstance(value, list):
            return [self.wrapped(item) for item in value]
        if isinstance(value, tuple):
            return tuple(self.wrapped(item) for item in value)
        return value


# Their names in PaddlePaddle.
Program, Parameter = FluidProgram, FluidParameter
Block, Operator = FluidBlock, FluidOperator


@dataclasses.dataclass
class _Defaults:
    main: FluidProgram
    startup: FluidProgram


_defaults = _Defaults(FluidProgram(), FluidProgram())


def default_main_program() -> FluidProgram:
    """Return the program that layers write into."""
    return _defaults.main


def default_startup_program() -> FluidProgram:
    """Return the program that initialises the parameters of main programs."""
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
    """Let layers in the block write into these; without a second, the startup program stays."""
    main = switch_main_program(main_program)
    startup = switch_startup_program(startup_program or default_startup_program())
    try:
        yield
    finally:
        switch_main_program(main)
        switch_startup_program(startup)


GRAD_VAR_SUFFIX, TEMP_VAR_NAME, ZERO_VAR_SUFFIX = "@GRAD", "@TEMP@", "@ZERO"  # Fluid's words

__all__ = ["FluidParameter", "FluidProgram", "Parameter", "Program", "Variable"]
__all__ += ["OpProtoHolder", "convert_np_dtype_to_dtype_", "grad_var_name"]
__all__ += ["default_main_program", "default_startup_program", "in_dygraph_mode", "name_scope"]
__all__ += ["program_guard", "switch_main_program", "switch_startup_program"]
