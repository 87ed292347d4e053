"""Files of vars as the beginning of a pserver: its tables take their values when it serves."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from psrt.core.specs import WarmStart, to_json
from psrt.core.types import F32, I64, Array
from psrt.fluid.framework import FluidProgram
from psrt.graph.program import Program
from psrt.trainer.models import save_parameters

_PAGE_ROWS = 65_536


def begin_with(program: FluidProgram, graph: Program, arrays: Mapping[str, Array]) -> None:
    """Let a pserver's program begin with whole parameters of `graph`; others begin as declared.

    They are kept as a saved model in a temporary folder, which goes with the program.
    """
    folder = Path(tempfile.mkdtemp(prefix="psrt-beginning-"))
    weakref.finalize(program, shutil.rmtree, folder, ignore_errors=True)
    place = folder / "model"
    records = graph.parameters
    dense = {name: values for name, values in arrays.items() if not records[name].sparse}
    tables: dict[str, Callable[[], Iterator[tuple[I64, F32]]]] = {
        name: partial(_pages, values) for name, values in arrays.items() if records[name].sparse
    }
    save_parameters(place, graph, dense, tables, program.job.plan.whole_specs())
    begin_at(program, place)


def begin_at(program: FluidProgram, directory: Path) -> None:
    """Let a pserver's program begin with a saved model."""
    program.serve_settings["warm_start"] = to_json(WarmStart(str(directory.resolve())))


def _pages(values: Array) -> Iterator[tuple[I64, F32]]:
    """The rows of a whole table by id."""
    for start in range(0, len(values), _PAGE_ROWS):
        rows = np.asarray(values[start : start + _PAGE_ROWS], np.float32)
        yield np.arange(start, start + len(rows), dtype=np.int64), rows


__all__ = ["begin_at", "begin_with"]
