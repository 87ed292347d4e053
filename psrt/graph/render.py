"""Programs as text, one op a line, and as drawings in Graphviz's language.

Both name ops and vars as the program does and are deterministic, so `diff` compares two programs. A
leading N counts examples; E counts the elements of a ragged var, all examples together.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np

from psrt.core.columns import aligned
from psrt.core.specs import ConstantRate
from psrt.graph.program import ROLES, Op, Parameter, Program, Role, Var

_COLOURS = {
    "forward": "#dbe9f6",
    "backward": "#fde3d0",
    "clip_and_decay": "#f3e3f5",
    "optimize": "#dcefdc",
}
_KINDS = {
    "data": 'style=filled fillcolor="#fff4c2"',
    "parameter": 'style=filled fillcolor="#e4e4e4"',
    "state": 'style="filled,dashed" fillcolor="#f4f4f4"',
    "temp": "style=solid",
}
_SPARSE = 'style="filled,bold" fillcolor="#c9c9c9"'

# --- text -----------------------------------------------------------------------------------------


def to_text(program: Program, roles: Collection[Role] = ROLES) -> str:
    """Return one op a line in the order they run, one line per parameter, and their sum."""
    ops = [op for op in program.ops if op.role in roles]
    rows = [("role", "op", "layer", "reads → writes")]
    rows += [(op.role, op.type, op.layer, _flow(program, op)) for op in ops]
    head = [f"{len(ops)} ops; N examples, E elements of a ragged var", ""]
    return "\n".join([*head, *aligned(rows, range(4)), "", *_parameter_lines(program), ""])


def _flow(program: Program, op: Op) -> str:
    read, written = (
        "  ".join(f"{slot}={_vars(program, names)}" for slot, names in slots.items() if any(names))
        for slots in (op.inputs, op.outputs)
    )
    return f"{read} → {written}"


def _vars(program: Program, names: Iterable[str]) -> str:
    return ", ".join(f"{name}{_shape(program, program.vars[name])}" for name in names if name)


def _shape(program: Program, var: Var) -> str:
    parameter = program.parameters.get(var.gradient_of or var.name)
    sizes = [str(size) for size in var.shape]
    if parameter is not None and parameter.distributed:
        sizes[0] = "any"
    elif var.shape[:1] == (-1,):
        sizes[0] = "E" if var.ragged else "N"
    return f"[{','.join(sizes)}]"


def _parameter_lines(program: Program) -> Iterator[str]:
    parameters = program.parameters.values()
    rows: list[tuple[str, ...]] = [("parameter", "shape", "kind", "trained by", "elements", "MiB")]
    rows += [_parameter_row(program, parameter) for parameter in parameters]
    yield from aligned(rows, range(4))
    held = [p for p in parameters if not p.distributed]
    elements = sum(map(_elements, held))
    size_bytes = sum(_size_bytes(program, p) for p in held)
    grown = len(program.parameters) - len(held)
    more = f", and {grown} distributed table(s) that grow by the ids they meet" if grown else ""
    yield f"{elements:,} elements, {size_bytes:,} bytes in {len(held)} parameters{more}"


def _parameter_row(program: Program, parameter: Parameter) -> tuple[str, ...]:
    mib = f"{_size_bytes(program, parameter) / 2**20:,.2f}"
    sizes = ("-", "-") if parameter.distributed else (f"{_elements(parameter):,}", mib)
    shape = _shape(program, program.vars[parameter.name])
    return (parameter.name, shape, kind_of(parameter), _trained_by(parameter), *sizes)


def kind_of(parameter: Parameter) -> str:
    """Return distributed (which implies sparse, see `Parameter`), sparse or dense."""
    if parameter.distributed:
        return "distributed"
    return "sparse" if parameter.sparse else "dense"


def _trained_by(parameter: Parameter) -> str:
    if parameter.optimizer is None or parameter.learning_rate is None:
        return "nothing"
    rate = parameter.learning_rate
    shown = f"{rate.rate:g}" if isinstance(rate, ConstantRate) else type(rate).__name__
    return f"{type(parameter.optimizer).__name__} {shown}"


def _elements(parameter: Parameter) -> int:
    return math.prod(parameter.shape)


def _size_bytes(program: Program, parameter: Parameter) -> int:
    return _elements(parameter) * np.dtype(program.vars[parameter.name].dtype).itemsize


# --- drawing --------------------------------------------------------------------------------------


def to_dot(program: Program, roles: Collection[Role] = ROLES) -> str:
    """Return a graph in Graphviz's DOT language: ops are boxes, grouped by role, vars ellipses.

    Data vars are yellow, parameters grey and sparse ones darker, with a bold rim; an edge is
    labelled with its slot.
    """
    ops = [
        (_quoted(f"op {number}"), op) for number, op in enumerate(program.ops) if op.role in roles
    ]
    used = {name for _, op in ops for name in (*op.reads(), *op.writes())}
    lines = ["digraph program {", "  rankdir=TB;", '  node [fontname="Helvetica" fontsize=10];']
    lines += ['  edge [fontname="Helvetica" fontsize=8 color="#777777"];']
    lines += [_var_node(program, var) for var in program.vars.values() if var.name in used]
    for role in ROLES:
        lines += _cluster(role, [(node, op) for node, op in ops if op.role == role])
    for node, op in ops:
        lines += _edges(node, op)
    return "\n".join([*lines, "}", ""])


def _var_node(program: Program, var: Var) -> str:
    parameter = program.parameters.get(var.name)
    style, about = _KINDS[var.kind], f"{var.dtype} {_shape(program, var)}"
    if parameter is not None and parameter.sparse:
        style, about = _SPARSE, f"{about} {kind_of(parameter)}"
    return f"  {_node_of(var.name)} [label={_quoted(var.name, about)} {style}];"


def _cluster(role: Role, ops: Sequence[tuple[str, Op]]) -> Iterator[str]:
    if not ops:
        return
    yield f"  subgraph cluster_{role} {{"
    yield f'    label="{role}"; color="#bbbbbb"; fontname="Helvetica";'
    yield f'    node [shape=box style=filled fillcolor="{_COLOURS[role]}"];'
    for node, op in ops:
        label, line = _quoted(op.type, op.layer), _quoted(op.origin)
        yield f"    {node} [label={label} tooltip={line}];"
    yield "  }"


def _edges(node: str, op: Op) -> Iterator[str]:
    for slot, names in op.inputs.items():
        yield from (f"  {_node_of(n)} -> {node} [label={_quoted(slot)}];" for n in names if n)
    for slot, names in op.outputs.items():
        yield from (f"  {node} -> {_node_of(n)} [label={_quoted(slot)}];" for n in names if n)


def _node_of(var: str) -> str:
    return _quoted(f"var {var}")


def _quoted(*lines: str) -> str:
    """A string of DOT; its escapes are those of JSON."""
    return json.dumps("\n".join(lines), ensure_ascii=False)
