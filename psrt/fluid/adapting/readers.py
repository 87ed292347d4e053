"""`py_reader` and its like: data vars of a program, fed by a loader that runs take batches from.

reader = fluid.layers.py_reader(capacity=8, shapes=[(-1, 784), (-1, 1)],
                                dtypes=["float32", "int64"])
image, label = fluid.layers.read_file(reader)
…
reader.decorate_paddle_reader(fluid.io.batch(examples, 32))
reader.start()      then runs without a feed, until EOFException
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from psrt.fluid.adapting.written_layers import input_data
from psrt.fluid.names import Variable, unique_name


def py_reader(
    capacity: int,
    shapes: Sequence[Sequence[int]],
    dtypes: Sequence[str],
    lod_levels: Sequence[int] | None = None,
    name: str | None = None,
    use_double_buffer: bool = True,
) -> Any:
    """Return a reader of a data var for each of `shapes`, which begin with the batch, −1.

    `capacity` batches are read ahead. `use_double_buffer` has no effect.
    """
    stem = name or unique_name.generate("py_reader")
    levels = lod_levels or [0] * len(shapes)
    vars = [
        input_data(f"{stem}.slot_{i}", shape, dtype, level)
        for i, (shape, dtype, level) in enumerate(zip(shapes, dtypes, levels, strict=True))
    ]
    return create_py_reader_by_data(capacity, vars)


def create_py_reader_by_data(
    capacity: int,
    feed_list: Sequence[Variable],
    name: str | None = None,
    use_double_buffer: bool = True,
) -> Any:
    """Return a reader that feeds these data vars; see `py_reader`."""
    reader = importlib.import_module("psrt.fluid.feeding").reader  # it loads kernels
    return reader.PyReader(feed_list, capacity, use_double_buffer, iterable=False)


def read_file(reader: Any) -> Any:
    """Return the data vars that a reader feeds: a list, or the only one."""
    vars = reader.vars
    return vars[0] if len(vars) == 1 else vars


def double_buffer(reader: Any, place: Any = None, name: str | None = None) -> Any:
    """Return the reader: it reads ahead as it is."""
    return reader


__all__ = ["create_py_reader_by_data", "double_buffer", "py_reader", "read_file"]
