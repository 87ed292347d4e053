"""Shows and clicks of the ids of a batch, for tables whose admission is `ShowClick`.

An id counts once for each of its occurrences in an example, with the shows and clicks of that
example. Ids that belong to no example count as shown once.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from psrt.communicator.base import Gradient
from psrt.core.errors import InternalError, ProgramError
from psrt.core.specs import ShowClick
from psrt.core.tensors import Ragged, SelectedRows
from psrt.core.types import F32, I32, I64, Array
from psrt.graph.program import Program

Counted: TypeAlias = Mapping[str, tuple[str, str]]
"""The data vars of shows and clicks, by table."""

NOTHING_COUNTED: Counted = MappingProxyType({})


def counted_tables(program: Program) -> Counted:
    """The tables whose gradients bring counts; raises if one names a var that is not fed."""
    counted: dict[str, tuple[str, str]] = {}
    for name, parameter in program.parameters.items():
        rule = parameter.options.admission
        if isinstance(rule, ShowClick):
            for var in (rule.show, rule.click):
                if var not in program.vars or program.vars[var].kind != "data":
                    raise ProgramError(
                        f"the admission of table {name} counts by {var!r}, which is no data var of "
                        "the program.",
                        hint="Declare it with layers.data, one number for each example.",
                    )
            counted[name] = (rule.show, rule.click)
    return counted


def counts_of(
    feed: Mapping[str, Array | Ragged], index: Mapping[str, I32], ids: int, vars: tuple[str, str]
) -> F32:
    """Return shows and clicks (ids, 2) of the distinct ids.

    `index[var]` holds the position among the distinct ids of each id of a data var; `vars` name the
    data vars of shows and clicks.
    """
    by_example = [_by_example(feed, var) for var in vars]
    counts: F32 = np.zeros((ids, 2), np.float32)
    for name, positions in index.items():
        examples = _examples_of(feed[name], len(by_example[0]))
        for column, of_example in enumerate(by_example):
            if examples is not None:
                weights = of_example[examples]
            else:
                weights = np.full(len(positions), 1.0 - column)
            counts[:, column] += np.bincount(positions, weights, ids).astype(np.float32)
    return counts


def with_counts(gradient: Gradient, ids: I64, counts: F32) -> Gradient:
    """The gradient of the rows `ids` (n,) of a batch, with their `counts` (n, 2)."""
    if not isinstance(gradient, SelectedRows) or not np.array_equal(gradient.ids, ids):
        raise InternalError("a gradient is not of the rows that were looked up")
    return SelectedRows(ids, gradient.values, gradient.height, gradient.unique, counts)


def _by_example(feed: Mapping[str, Array | Ragged], name: str) -> Array:
    fed = feed[name]
    if isinstance(fed, Ragged) or fed.size != len(fed):
        raise ProgramError(
            f"data var {name} counts shows or clicks, and was fed more or less than one number for "
            "each example.",
            hint="Feed it as (rows,) or (rows, 1).",
        )
    return fed.reshape(-1).astype(np.float64)


def _examples_of(fed: Array | Ragged, examples: int) -> I64 | None:
    """Return the example of each id (n,); None for ids that belong to none."""
    numbers = np.arange(examples, dtype=np.int64)
    if isinstance(fed, Ragged):
        return np.repeat(numbers, np.diff(fed.offsets))
    if len(fed) != examples:
        return None
    return np.repeat(numbers, fed.size // max(1, examples))
