"""Feeds and fetched values in the forms of Fluid."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from psrt.core.errors import DataError
from psrt.core.tensors import Ragged
from psrt.core.types import Array
from psrt.fluid.names import Variable
from psrt.graph.program import Var

Feed: TypeAlias = Mapping[str, Any]
Batch: TypeAlias = dict[str, Array | Ragged]
Fetch: TypeAlias = str | Variable | Var
OnStep: TypeAlias = Callable[[list[Any]], None]
"""Consumer of the fetched values of each step."""


def feed_of(given: Feed | Sequence[Feed] | None) -> Batch:
    """Return one batch of arrays; parts in a list, one per replica in Fluid, are joined."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {name: _fed(value) for name, value in given.items()}
    parts = [feed_of(part) for part in given]
    if len({frozenset(part) for part in parts}) > 1:
        raise DataError("The parts of a feed do not feed the same vars.")
    return {name: _joined([part[name] for part in parts]) for name in (parts[0] if parts else ())}


def names_of(fetches: Sequence[Fetch] | Fetch | None) -> list[str]:
    """Return the names in a fetch list, or of one var."""
    if fetches is None:
        return []
    listed = [fetches] if isinstance(fetches, str | Variable | Var) else fetches
    return [fetch if isinstance(fetch, str) else fetch.name for fetch in listed]


def returned(values: Iterable[Any]) -> list[Any]:
    """Return fetched values in Fluid's shapes: scalars have one element, in lists, too."""
    return [_returned(value) for value in values]


def create_lod_tensor(
    data: Any, recursive_seq_lens: Sequence[Sequence[int]], place: Any = None
) -> Ragged:
    """Return a ragged value of elements (n,) or (n, 1), or a list of lists, and their lengths.

    `recursive_seq_lens` has one level: the number of elements of each example. Raises `DataError`
    for more levels.
    """
    if len(recursive_seq_lens) != 1:
        raise DataError(
            f"create_lod_tensor was given {len(recursive_seq_lens)} levels of lengths; psrt has "
            "lists of scalars, one level.",
            hint="Feed each list as a slot of its own.",
        )
    if isinstance(data, list):
        data = np.concatenate([np.asarray(part) for part in data])
    ends = np.concatenate([[0], np.cumsum(recursive_seq_lens[0], dtype=np.int64)])
    return Ragged(np.asarray(data).reshape(-1), ends)


def _fed(value: Any) -> Array | Ragged:
    return value if isinstance(value, Ragged) else np.asarray(value)


def _joined(parts: Sequence[Array | Ragged]) -> Array | Ragged:
    ragged = [part for part in parts if isinstance(part, Ragged)]
    if not ragged:
        return np.concatenate([np.asarray(part) for part in parts])
    lengths = np.concatenate([np.diff(part.offsets) for part in ragged])
    values = np.concatenate([part.values for part in ragged])
    return Ragged(values, np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]))


def _returned(value: Any) -> Any:
    if isinstance(value, list):
        return [_returned(part) for part in value]
    return value.reshape(1) if isinstance(value, np.ndarray) and value.ndim == 0 else value
