"""Kernels that apply an optimizer's formula to dense blocks and to rows, made from its signature.

Kernels of optimizers differ in their arguments alone; numba takes a tuple of numbers only with a
cost at every call, and does not cache closures over device functions on disk. So their source is
rendered from templates, as `dataclasses` renders its methods: one line per optimizer, below.

A kernel takes arrays, then the formula's arguments behind the gradient: `lanes`, where it needs
scratch, and numbers. Arrays of a block: weights (n,), state vectors (n,), gradient (n,). Arrays of
rows: `weights` (m, ·) and the column where they begin, `state` (m, ·) and the column where it
begins, `slots` (n,) of the rows to update, `order` (n,) and `grads`; `grads[order[k]]` (d,) is for
row `slots[k]`. A slot that appears twice is updated twice, in order. On a pserver `weights` and
`state` are one slab `[header | weights | state]`; on a trainer the weights are a row of the table
in the scope, and `[header | state]` a row of another array. Callers own the locks.

A formula with a `step_size`, `scale` or `eps_hat` corrects the bias of first updates. Its row
kernel takes `corrections` of `adam_corrections` and the uncorrected numbers: update t of a row, the
count in its header, uses line min(t, lines).
"""

from __future__ import annotations

import inspect
import linecache
from typing import Any, NamedTuple

import numpy as np

from psrt.kernels.jit import Kernel, kernel
from psrt.kernels.optimizers import ctr_formulas, formulas
from psrt.kernels.optimizers.row_headers import fetch_ahead, is_resting, line_of

_BLOCK = """\
def {name}_({arguments}):
    {body}
"""
_ROWS = """\
def {name}_rows_({arguments}):
    d = grads.shape[1]
    for k in range(len(slots)):
        fetch_ahead(weights, state, slots, k)
        i, g = slots[k], grads[order[k]]
        {body}
"""
_COUNTED_ROWS = _ROWS.replace("    d =", "    headers = state.view(np.int32)\n    d =")
_REST = """\
def {name}_rest_({arguments}):
    headers, d = state.view(np.int32), len(g)
    for i in range(size):
        if is_resting(headers, i, version):
            {body}
"""
_TABLE = {"weights": "f4[:, ::1]", "at": "i8", "state": "f4[:, ::1]", "state_at": "i8"}
_INDEX = "const i4[::1]"
_ROW_TYPES = _TABLE | {"slots": _INDEX, "order": _INDEX, "grads": "const f4[:, ::1]"}
_REST_TYPES = _TABLE | {"size": "i8", "version": "i8", "g": "const f4[::1]"}
_CORRECTED = {
    "step_size": ("lr", "lr * corrections[line, 0]"),
    "scale": ("", "corrections[line, 0]"),
    "eps_hat": ("eps", "eps * corrections[line, 1]"),
}
"""Number of a formula → the number its row kernel takes instead, and the formula's from that."""


class UpdateKernels(NamedTuple):
    """`rest` moves the first `size` rows, except those of `version`, by one gradient (d,)."""

    block: Kernel
    rows: Kernel
    rest: Kernel | None


def _kernels(
    step: Any, types: str, *, lanes: str = "d", shares_state: bool = False, moves_rest: bool = False
) -> UpdateKernels:
    """The kernels of a formula whose numbers have `types`.

    Rows use their first `lanes` lanes of scratch. With `shares_state` a row has one number of each
    state vector; a block has the vector all the same, and uses its first element.
    """
    parameters = list(inspect.signature(step.py_func).parameters)
    arrays = parameters[: parameters.index("g") + 1]
    scratch = {"lanes": "f8[::1]"} if "lanes" in parameters else {}
    names = parameters[len(arrays) + len(scratch) :]
    numbers = dict(zip(names, types.split(), strict=True))

    guard = "if len(w): " if shares_state else ""
    body = [f"{guard}step({', '.join(parameters)})"]
    block_types = dict.fromkeys(arrays, "f4[::1]") | {"g": "const f4[::1]"}
    block = _render(_BLOCK, step, block_types | scratch | numbers, body)

    views = _views(arrays[1:-1], "1" if shares_state else "d")
    of_row = [f"lanes[:{lanes}]" if each == "lanes" else each for each in parameters]
    update = f"step({', '.join(of_row)})"
    corrections = _corrections(numbers)
    template = _COUNTED_ROWS if corrections else _ROWS
    row_types = _ROW_TYPES | scratch | _uncorrected(numbers)
    rows = _render(template, step, row_types, [*corrections, *views, update])

    rest_types = _REST_TYPES | numbers
    rest = _render(_REST, step, rest_types, [*views, update]) if moves_rest else None
    return UpdateKernels(block, rows, rest)


def _views(state: list[str], width: str) -> list[str]:
    """Statements that name the weights and the state vectors of row `i`."""
    starts = [f"state_at + {number} * {width}" for number in range(len(state))]
    return ["w = weights[i, at : at + d]"] + [
        f"{name} = state[i, {start} : {start} + {width}]"
        for name, start in zip(state, starts, strict=True)
    ]


def _corrections(numbers: dict[str, str]) -> list[str]:
    """Statements that correct the numbers of row `i`."""
    corrected = [f"{name} = {_CORRECTED[name][1]}" for name in numbers if name in _CORRECTED]
    return ["line = line_of(corrections, headers, i)", *corrected] if corrected else []


def _uncorrected(numbers: dict[str, str]) -> dict[str, str]:
    """The numbers that row kernels take, with their types."""
    if _CORRECTED.keys().isdisjoint(numbers):
        return numbers
    taken = {_CORRECTED.get(name, (name,))[0]: type_ for name, type_ in numbers.items()}
    return {"corrections": "const f4[:, ::1]"} | {n: t for n, t in taken.items() if n}


def _render(template: str, step: Any, arguments: dict[str, str], body: list[str]) -> Kernel:
    """A kernel of `arguments`, given as names and types; tracebacks show its source."""
    indent = template.splitlines()[-1].partition("{")[0]
    source = template.format(
        name=step.__name__.removesuffix("_step_"),
        arguments=", ".join(arguments),
        body=f"\n{indent}".join(body),
    )
    name = source.split()[1].partition("(")[0]
    filename = f"<{name} in {__name__}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    scope = dict(_SCOPE, step=step)
    exec(compile(source, filename, "exec"), scope)
    return kernel(f"{', '.join(arguments.values())} -> void", group="rule")(scope[name])


_SCOPE = {
    "__name__": __name__,
    "np": np,
    "fetch_ahead": fetch_ahead,
    "is_resting": is_resting,
    "line_of": line_of,
}

sgd = _kernels(formulas.sgd_step_, "f4")
momentum = _kernels(formulas.momentum_step_, "f4 f4 b1")
adagrad = _kernels(formulas.adagrad_step_, "f4 f4")
row_wise_adagrad = _kernels(formulas.row_wise_adagrad_step_, "f4 f4", shares_state=True)
decayed_adagrad = _kernels(formulas.decayed_adagrad_step_, "f4 f8 f4")
adadelta = _kernels(formulas.adadelta_step_, "f4 f8 f4")
rms_prop = _kernels(formulas.rms_prop_step_, "f4 f8 f4 f4")
centered_rms_prop = _kernels(formulas.centered_rms_prop_step_, "f4 f8 f4 f4")
adam = _kernels(formulas.adam_step_, "f4 f8 f8 f4", moves_rest=True)
adamw = _kernels(formulas.adamw_step_, "f4 f8 f8 f4 f4", moves_rest=True)
adamax = _kernels(formulas.adamax_step_, "f4 f8 f4 f4")
ftrl = _kernels(formulas.ftrl_step_, "f4 f4 f4 f4")
lars = _kernels(formulas.lars_step_, "f4 f4 f4 f4 f4")
lamb = _kernels(formulas.lamb_step_, "f4 f4 f4 f8 f8 f4", lanes="2 * d")
ctr_sgd = _kernels(ctr_formulas.ctr_sgd_step_, "f4 f4 f4")
ctr_adagrad = _kernels(ctr_formulas.ctr_adagrad_step_, "f4 f4 f4 f4", shares_state=True)
ctr_std_adagrad = _kernels(ctr_formulas.ctr_std_adagrad_step_, "f4 f4 f4 f4")
ctr_adam = _kernels(ctr_formulas.ctr_adam_step_, "f4 f8 f8 f4 f4 f4")
ctr_shared_adam = _kernels(
    ctr_formulas.ctr_shared_adam_step_, "f4 f8 f8 f4 f4 f4", shares_state=True
)
