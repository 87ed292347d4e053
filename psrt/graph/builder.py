"""The current builder, and the part that all layer functions share.

The current builder is context-local: threads and nested `with program()` blocks each have their
own. A `Layer` is one call of a layer function. It names the call, records the user's line, creates
parameters, appends ops, and turns every misfit into an error that names all of these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

from psrt.core.attributes import plain
from psrt.core.errors import ErrorCode, ProgramError
from psrt.core.specs import DEFAULT_OPTIONS, option_problems
from psrt.core.types import Shape
from psrt.graph.arguments import ArgumentChecks, shown
from psrt.graph.initializer import AnyInitializer, resolve
from psrt.graph.names import user_line
from psrt.graph.ops import OPS, Mismatch, OpCall, TensorType
from psrt.graph.param import Param, param_problems
from psrt.graph.program import Kind, Op, Parameter, Program, Var, seed_of

_current: ContextVar[Builder | None] = ContextVar("psrt_builder", default=None)

_SET_BY_MINIMIZE = {"optimizer", "learning_rate", "regularizer"}

Vars: TypeAlias = Var | Sequence[Var]


class Builder:
    """A program under construction, its names so far, and users' declarations of parameters.

    `counts` may be shared with other builders. `seed_names` maps each numbered layer name to the
    one it has where this program is counted alone: seeds of parameters follow from that one, so
    two programs of the same layers and seed begin with the same values.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.declared: dict[str, Param] = {}
        self.counts: Counter[str] = Counter()
        self.seed_names: dict[str, str] = {}
        self._counted_alone: Counter[str] = Counter()
        self._name = ""

    def unique(self, prefix: str) -> str:
        """Return `fc_0`, `fc_1`, …"""
        name = f"{prefix}_{self.counts[prefix]}"
        self.counts[prefix] += 1
        if name not in self.seed_names:
            self.seed_names[name] = f"{prefix}_{self._counted_alone[prefix]}"
            self._counted_alone[prefix] += 1
        return name

    def name_of_call(self, kind: str) -> str:
        """Return the name of a layer call: the one of `written_into` once, then a new one."""
        given, self._name = self._name, ""
        return given or self.unique(kind)

    @contextmanager
    def written_into(self, name: str = "") -> Iterator[None]:
        """Let the layer functions called in the block write here; the first call is called `name`.

        For callers that keep programs of their own; users write `with psrt.program()`.
        """
        token, self._name = _current.set(self), name
        try:
            yield
        finally:
            self._name = ""
            _current.reset(token)


@contextmanager
def program(seed: int = 0) -> Iterator[Program]:
    """Make a new program, which the layer functions called in the block write into.

    `seed` is a whole number; initial values and random layers follow from it. Raises `ProgramError`
    for another seed.
    """
    seed = plain(seed)
    if not isinstance(seed, int):
        raise ProgramError(f"psrt.program was given the seed {seed!r}, not a whole number.")
    built = Program(seed=seed)
    with Builder(built).written_into():
        yield built


def current_builder(caller: str) -> Builder:
    """Return the builder of this context; raises `ProgramError` where there is none."""
    builder = _current.get()
    if builder is None:
        raise ProgramError(
            f"{caller} was called at {user_line()} outside of a program.",
            hint="Call it inside `with psrt.program():`.",
        )
    return builder


class Layer(ArgumentChecks):
    """One call of the layer function `kind`."""

    def __init__(self, kind: str, name: str | None = None) -> None:
        builder = current_builder(f"layers.{kind}")
        self.kind, self.origin = kind, user_line()
        if name is not None and not (isinstance(name, str) and name):
            what = f"layers.{kind} at {self.origin}: argument name is {shown(name)}"
            raise ProgramError(f"{what}, not a text of one letter or more.")
        self.name = name or builder.name_of_call(kind)
        self.program = builder.program
        self._declared = builder.declared
        self._seed_name = builder.seed_names.get(self.name, self.name)

    def error(
        self, message: str, hint: str = "", code: ErrorCode = ErrorCode.PROGRAM_INVALID
    ) -> ProgramError:
        where = f"layers.{self.kind} ({self.name}) at {self.origin}"
        return ProgramError(f"{where}: {message}.", hint=hint, code=code)

    def var(
        self,
        name: str,
        shape: Shape,
        dtype: str,
        kind: Kind,
        ragged: bool = False,
        initial: float = 0.0,
    ) -> Var:
        if name in self.program.vars:
            raise self.error(f"the program has a var named {name} already", "Choose another name.")
        var = Var(name, plain(shape), dtype, kind, ragged, initial=initial)
        self.program.vars[name] = var
        return var

    def parameter(
        self,
        suffix: str,
        shape: Shape,
        param: Param | str | None,
        default: AnyInitializer,
        **table: Any,
    ) -> Var:
        """Return the parameter `param` names, new or shared; `table` are fields of a sparse one."""
        declared = self._declared_of(suffix, param)
        name, shape = declared.name or f"{self.name}.{suffix}", self.wholes("shape", shape)
        known = self.program.parameters.get(name)
        shared = known.initializer if known is not None else default
        shared_scale = known.rate_scale if known is not None else 1.0
        shared_options = known.options if known is not None else DEFAULT_OPTIONS
        seed = seed_of(self.program.seed, declared.name or f"{self._seed_name}.{suffix}")
        shared_seed = known.seed if known is not None else seed
        made = Parameter(
            name,
            shape,
            resolve(declared.initializer or shared, shape),
            shared_seed if declared.seed is None else declared.seed,
            trainable=declared.trainable,
            rate_scale=shared_scale if declared.learning_rate is None else declared.learning_rate,
            options=declared.table or shared_options,
            **table,
        )
        self._check_declared(name, declared)
        if declared.table is not None and not made.sparse:
            raise self.error(
                f"parameter {name} is dense, and was given options of a sparse table",
                "Pass is_sparse=True or is_distributed=True to an embedding, or leave them out.",
            )
        for problem in option_problems(made.options, shape[-1]) if made.sparse else ():
            raise self.error(
                f"table {name}: {problem}", "docs/reference/tables.md lists options and limits."
            )
        if known is None:
            var = self.var(name, shape, "float32", "parameter")
            self.program.parameters[name] = made
            return var
        self._check_same(known, made)
        return self.program.vars[name]

    def _check_same(self, known: Parameter, made: Parameter) -> None:
        """Raise unless the layers that share a parameter declare it alike."""
        declared = {n: value for n, value in vars(made).items() if n not in _SET_BY_MINIMIZE}
        differ = [name for name, value in declared.items() if value != getattr(known, name)]
        if differ:
            old, new = (", ".join(f"{n} {getattr(p, n)}" for n in differ) for p in (known, made))
            raise self.error(
                f"parameter {made.name} exists with {old}, and was declared with {new}",
                "Layers that name one parameter share it: choose another name, or equal fields.",
            )

    def _declared_of(self, suffix: str, param: Any) -> Param:
        """Check the argument `param`, or `bias`, of a layer."""
        declared = Param(param) if isinstance(param, str) else Param() if param is None else param
        argument = "bias" if suffix.startswith("b") else "param"
        if not isinstance(declared, Param):
            raise self.error(f"argument {argument} is {shown(param)}, not a psrt.Param or a name")
        problem = next(param_problems(declared), "")
        if problem:
            raise self.error(f"argument {argument} is not usable, {problem}")
        return declared

    def _check_declared(self, name: str, declared: Param) -> None:
        """Raise unless a later layer repeats the declared training of a parameter, or omits it."""
        first = self._declared.setdefault(name, declared)
        for what, old, new in (
            ("regularizer", first.regularizer, declared.regularizer),
            ("clip", first.clip, declared.clip),
            ("optimizer", first.optimizer, declared.optimizer),
        ):
            if new is not None and new != old:
                raise self.error(f"parameter {name} exists with {what} {old}, not {new}")

    def op(self, type: str, inputs: dict[str, Vars], **attrs: Any) -> Var:
        """Append an op and return its first output."""
        return next(iter(self.ops(type, inputs, **attrs).values()))

    def ops(self, type: str, inputs: dict[str, Vars], **attrs: Any) -> dict[str, Var]:
        """Append an op and return its outputs by slot.

        An output slot with the name of an input slot is that var, changed in place.
        """
        args = {slot: self.checked(slot, given) for slot, given in inputs.items()}
        attrs = self.plain_attributes(attrs)
        types = self._types_of(type, args, attrs)
        outputs = {
            slot: args[slot][0] if slot in args else self._temp(f"{self.name}.{slot}", found)
            for slot, found in types.items()
        }
        read = {slot: tuple(v.name for v in vars) for slot, vars in args.items()}
        written: dict[str, tuple[str, ...]] = {slot: (v.name,) for slot, v in outputs.items()}
        self.program.ops.append(Op(type, read, written, attrs, layer=self.name, origin=self.origin))
        return outputs

    def op_each(self, type: str, inputs: dict[str, Vars], count: int, **attrs: Any) -> list[Var]:
        """Append an op whose output is a list; returns its `count` vars."""
        args = {slot: self.checked(slot, given) for slot, given in inputs.items()}
        attrs = self.plain_attributes(attrs)
        self._types_of(type, args, attrs)
        types = [var.type for var in args[OPS[type].each][:count]]
        made = [self._temp(f"{self.name}.out", found) for found in types]
        read = {slot: tuple(v.name for v in vars) for slot, vars in args.items()}
        written: dict[str, tuple[str, ...]] = {"out": tuple(var.name for var in made)}
        self.program.ops.append(Op(type, read, written, attrs, layer=self.name, origin=self.origin))
        return made

    def _types_of(
        self, type: str, args: dict[str, tuple[Var, ...]], attrs: dict[str, Any]
    ) -> dict[str, TensorType]:
        """Infer the types of the outputs of an op."""
        call = OpCall({slot: tuple(v.type for v in vars) for slot, vars in args.items()}, attrs)
        try:
            return OPS[type].types_of(call)
        except Mismatch as mismatch:
            hint = f"docs/reference/layers.md has the shapes that psrt.layers.{self.kind} takes."
            raise self.error(str(mismatch), hint, ErrorCode.SHAPE_MISMATCH) from None
        except (TypeError, ValueError, AttributeError, LookupError) as error:
            raise self.error(f"its arguments do not fit, {error}") from error

    def checked(self, argument: str, given: Any) -> tuple[Var, ...]:
        """Return the var or vars given as `argument`, if they are vars of this program."""
        listed = tuple(given) if isinstance(given, Sequence) else (given,)
        for var in listed:
            if not isinstance(var, Var):
                raise self.error(
                    f"argument {argument} must be a var, not {var!r}",
                    "Give what a layer returned: layers.data for data, layers.fill_constant for a "
                    "constant.",
                )
            if self.program.vars.get(var.name) is not var:
                raise self.error(f"argument {argument} is {var.name}, a var of another program")
        return listed

    def _temp(self, name: str, found: Any) -> Var:
        number, free = 0, name
        while free in self.program.vars:
            number += 1
            free = f"{name}_{number}"
        return self.var(free, found.shape, found.dtype, "temp", found.ragged)


__all__ = ["Builder", "Layer", "Param", "Vars", "current_builder", "program"]
