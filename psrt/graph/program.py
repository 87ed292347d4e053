"""Programs as plain data: vars, ops in order, parameters.

Nothing here computes or checks; builders write programs, `verify` checks them, executors compile
them. A program has one text form, one JSON object a line, and `Program.from_text(program.to_text())
== program` holds for every program.

Shapes: a leading -1 counts examples, in a ragged var the elements of all examples.
"""

from __future__ import annotations

import dataclasses
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import UnionType
from typing import Any, Literal, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

from psrt.core.errors import ProgramError, PsrtError
from psrt.core.specs import (
    DEFAULT_OPTIONS,
    Initializer,
    LearningRate,
    Optimizer,
    Regularizer,
    TableOptions,
    from_plain,
    to_plain,
)
from psrt.core.types import Shape
from psrt.graph.arithmetic import Arithmetic
from psrt.graph.ops import TensorType, body_as_lines, body_as_text

Kind: TypeAlias = Literal["data", "parameter", "state", "temp"]
Role: TypeAlias = Literal["forward", "backward", "clip_and_decay", "optimize"]
ROLES: tuple[Role, ...] = ("forward", "backward", "clip_and_decay", "optimize")
TEXT_FORMAT = 1
_ROLE_IN_TEXT = "adjust"  # of role "clip_and_decay": the text form of saved models stays as it is

_Record = TypeVar("_Record", "Var", "Parameter", "Op")


@dataclass(frozen=True)
class Var(Arithmetic):
    """One value of a step; `+ − * / **`, `@` and numbers append ops (`psrt.layers.operators`).

    `data` is fed, `parameter` is trained, `state` lives in the scope, begins with `initial` and is
    changed in place by ops, `temp` is computed. `gradient_of` implies kind `temp` and the type of
    the var it names; a gradient of a sparse parameter is a SelectedRows at run time.
    `stop_gradient` implies that backward ends there.
    """

    name: str
    shape: Shape
    dtype: str = "float32"
    kind: Kind = "temp"
    ragged: bool = False
    gradient_of: str = ""
    stop_gradient: bool = False
    initial: float = 0.0

    @property
    def type(self) -> TensorType:
        return TensorType(self.shape, self.dtype, self.ragged)


@dataclass(frozen=True)
class Parameter:
    """Initial values and training of one parameter.

    `sparse` implies that its gradient holds only touched rows. `distributed` implies `sparse` and
    that no trainer holds the whole table: ids are any int64 and `shape[0]` is no limit. `options`
    are for the pservers that hold the rows of a sparse one. `minimize` sets `optimizer` and
    `learning_rate`, the rate times `rate_scale`; both are None until then. It also sets
    `regularizer`, for pservers that apply the optimizer without the program's ops of role
    "clip_and_decay": it implies that one of these is the parameter's decay.
    """

    name: str
    shape: Shape
    initializer: Initializer
    seed: int
    sparse: bool = False
    distributed: bool = False
    padding_id: int | None = None
    options: TableOptions = DEFAULT_OPTIONS
    trainable: bool = True
    rate_scale: float = 1.0
    optimizer: Optimizer | None = None
    learning_rate: LearningRate | None = None
    regularizer: Regularizer | None = None


@dataclass(frozen=True)
class Op:
    """One computation. A name "" in a slot is a gradient that no op needs.

    `layer` is the layer call it came from (`fc_0`), `origin` the user's line (`train.py:12`). Role
    "clip_and_decay" clips and regularises a gradient after the local replicas have added theirs; an
    update reads the last var with `gradient_of` its parameter.
    """

    type: str
    inputs: dict[str, tuple[str, ...]]
    outputs: dict[str, tuple[str, ...]]
    attrs: dict[str, Any] = field(default_factory=dict)
    role: Role = "forward"
    layer: str = ""
    origin: str = ""

    def reads(self) -> Iterator[str]:
        return (name for names in self.inputs.values() for name in names if name)

    def writes(self) -> Iterator[str]:
        return (name for names in self.outputs.values() for name in names if name)

    def __str__(self) -> str:
        return f"op {self.type} of layer {self.layer} ({self.origin})"


@dataclass
class Program:
    """Vars and parameters by name, ops in the order they run."""

    seed: int = 0
    vars: dict[str, Var] = field(default_factory=dict)
    ops: list[Op] = field(default_factory=list)
    parameters: dict[str, Parameter] = field(default_factory=dict)

    def data_vars(self) -> list[Var]:
        """Return the vars to feed in order of declaration, the order of slots in a data file."""
        return [var for var in self.vars.values() if var.kind == "data"]

    def trained(self) -> list[Parameter]:
        """Return parameters that an update op trains, in order of declaration."""
        return [p for p in self.parameters.values() if p.optimizer is not None]

    def gradients(self) -> dict[str, str]:
        """Return the last gradient of each parameter, which an update reads or a trainer pushes.

        Empty for a program without a backward.
        """
        made = (var for var in self.vars.values() if var.gradient_of in self.parameters)
        return {var.gradient_of: var.name for var in made}

    def clone(self, for_test: bool = False) -> Program:
        """Return a copy that shares no container with this program.

        `for_test` keeps the forward ops only and sets `is_test` on those that have it; nothing is
        trained then.
        """
        if not for_test:
            return Program(self.seed, dict(self.vars), list(self.ops), dict(self.parameters))
        gone = {name for op in self.ops if op.role != "forward" for name in op.writes()}
        return Program(
            self.seed,
            {name: v for name, v in self.vars.items() if v.kind != "temp" or name not in gone},
            [_tested(op) for op in self.ops if op.role == "forward"],
            {
                name: dataclasses.replace(p, optimizer=None, learning_rate=None, regularizer=None)
                for name, p in self.parameters.items()
            },
        )

    def to_text(self) -> str:
        """Return one JSON object a line, fields in the order of the classes above."""
        head = f"psrt-program {TEXT_FORMAT} {json.dumps({'seed': self.seed})}"
        body = [f"var {_json_of(var)}" for var in self.vars.values()]
        body += [f"parameter {_json_of(parameter)}" for parameter in self.parameters.values()]
        body += [f"op {_json_of(op)}" for op in self.ops]
        return "\n".join([head, *body, ""])

    @classmethod
    def from_text(cls, text: str) -> Program:
        """Inverse of `to_text`; raises `ProgramError` naming the first line that is not legal."""
        program = cls()
        for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
            try:
                if number == 1:
                    program.seed = _read_head(line)
                else:
                    program._read_line(line)
            except (*_NOT_LEGAL, PsrtError) as error:
                what = f"Line {number} of the program text is not legal: {error}."
                raise ProgramError(what) from error
        return program

    def _read_line(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        fields = json.loads(rest)
        if word == "var":
            var = _record(Var, _tuples(fields))
            self.vars[var.name] = var
        elif word == "parameter":
            plain = {name: from_plain(value) for name, value in fields.items()}
            parameter = _record(Parameter, plain)
            self.parameters[parameter.name] = parameter
        elif word == "op":
            if fields.get("role") == _ROLE_IN_TEXT:
                fields["role"] = "clip_and_decay"
            self.ops.append(_record(Op, body_as_text(_tuples(fields))))
        else:
            raise ValueError(f"unknown word {word!r}")


_DECLARED: dict[type, dict[str, Any]] = {cls: get_type_hints(cls) for cls in (Var, Parameter, Op)}
"""The type of each field."""

_NOT_LEGAL = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""Errors of reading a line that is not legal."""


def gradient_name(name: str) -> str:
    return f"{name}@GRAD"


def seed_of(program_seed: int, parameter: str) -> int:
    """Return a parameter's seed, equal in every process that builds the program."""
    return zlib.crc32(f"{program_seed}/{parameter}".encode())


def _tested(op: Op) -> Op:
    is_test = {"is_test": True} if "is_test" in op.attrs else {}
    return dataclasses.replace(op, attrs=op.attrs | is_test)


def _read_head(line: str) -> int:
    """The seed of the program."""
    word, version, rest = line.split(" ", 2)
    if word != "psrt-program" or int(version) != TEXT_FORMAT:
        raise ValueError(f"it does not begin with `psrt-program {TEXT_FORMAT}`")
    return int(json.loads(rest)["seed"])


def _json_of(record: Var | Parameter | Op) -> str:
    """Fields that have their default are left out."""
    shown = {
        f.name: to_plain(getattr(record, f.name))
        for f in dataclasses.fields(record)
        if f.default is dataclasses.MISSING or getattr(record, f.name) != f.default
    }
    if shown.get("role") == "clip_and_decay":
        shown["role"] = _ROLE_IN_TEXT
    return json.dumps(body_as_lines(shown), ensure_ascii=False)


def _tuples(value: Any) -> Any:
    """Lists of JSON become tuples, at any depth."""
    if isinstance(value, dict):
        return {key: _tuples(item) for key, item in value.items()}
    if isinstance(value, list):
        return tuple(_tuples(item) for item in value)
    return value


def _record(cls: type[_Record], fields: Mapping[str, Any]) -> _Record:
    """The record of these fields, each of the type its class declares."""
    record = cls(**fields)
    for name, declared in _DECLARED[cls].items():
        value = getattr(record, name)
        if not _fits(value, declared):
            raise TypeError(f"{cls.__name__.lower()} has {name} {value!r:.50}")
    return record


def _fits(value: Any, declared: Any) -> bool:
    """Return whether a value is of a type of the fields above."""
    origin, arguments = get_origin(declared), get_args(declared)
    if declared is Any:
        return True
    if origin is Literal:
        return value in arguments
    if origin is UnionType:
        return any(_fits(value, one) for one in arguments)
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(item, arguments[0]) for item in value)
    if origin is dict:
        return isinstance(value, dict) and all(
            _fits(key, arguments[0]) and _fits(item, arguments[1]) for key, item in value.items()
        )
    if declared is float:
        return type(value) in (int, float)
    # type() rather than isinstance(): True is an int, and no shape has it.
    return type(value) is declared
