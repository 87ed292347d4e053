"""The data of `psrt.fit`, as batches of one epoch.

Data are one of: arrays by name of a data var, cut into batches; files of MultiSlot lines by glob; a
dataset, or any other iterable of batches that begins anew for each epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from psrt.core.errors import DataError, ErrorCode
from psrt.core.tensors import Ragged
from psrt.core.types import Array
from psrt.data.formats import MultiSlotFormat
from psrt.data.reading import QueueReader
from psrt.data.slots import shaped, slot_of
from psrt.data.sources import expand
from psrt.executor.program import Feed
from psrt.graph.model import Model

Data: TypeAlias = Mapping[str, Any] | str | Sequence[str] | Iterable[Feed]


def batches_of(data: Data, model: Model, batch_size: int) -> Iterator[Feed]:
    """Yield the batches of one epoch; raises `DataError` for data of another kind."""
    if isinstance(data, Mapping):
        return _of_arrays(data, batch_size)
    if isinstance(data, str) or (isinstance(data, list | tuple) and _are_texts(data)):
        return _of_files([data] if isinstance(data, str) else data, model, batch_size)
    if hasattr(data, "batches"):  # a dataset of psrt
        return iter(data.batches())
    if isinstance(data, Iterator) or not isinstance(data, Iterable):
        raise DataError(
            f"psrt.fit was given {type(data).__name__}, which does not begin anew for each epoch.",
            hint="Give arrays by name, globs of files, a dataset, or a list of batches.",
        )
    batches: Iterable[Feed] = data  # type: ignore[assignment]  # texts were files
    return iter(batches)


def _are_texts(data: Sequence[Any]) -> bool:
    return bool(data) and all(isinstance(each, str) for each in data)


def _of_arrays(data: Mapping[str, Any], batch_size: int) -> Iterator[Feed]:
    arrays = {
        name: given if isinstance(given, Ragged) else np.asarray(given)
        for name, given in data.items()
    }
    lengths = {name: _examples(array) for name, array in arrays.items()}
    if len(set(lengths.values())) != 1 or 0 in lengths.values():
        counts = ", ".join(f"{name} {count}" for name, count in lengths.items())
        raise DataError(
            f"the arrays of psrt.fit have other numbers of examples, or none: {counts}.",
            code=ErrorCode.SHAPE_MISMATCH,
            hint="Give each data var one array with a row for each example.",
        )
    rows = next(iter(lengths.values()))
    for start in range(0, rows, batch_size):
        yield {
            name: _part(each, start, min(start + batch_size, rows)) for name, each in arrays.items()
        }


def _examples(array: Array | Ragged) -> int:
    return array.batch_size if isinstance(array, Ragged) else len(array)


def _part(array: Array | Ragged, start: int, stop: int) -> Array | Ragged:
    if not isinstance(array, Ragged):
        return array[start:stop]
    offsets = array.offsets[start : stop + 1]
    return Ragged(array.values[offsets[0] : offsets[-1]], offsets - offsets[0])


def _of_files(globs: Sequence[str], model: Model, batch_size: int) -> Iterator[Feed]:
    slots = tuple(slot_of(var) for var in model.feeds)
    with QueueReader(expand(globs), slots, batch_size, format=MultiSlotFormat(slots)) as batches:
        for batch in batches:
            yield shaped(model.feeds, batch)
