"""libsvm text (also svmlight) as MultiSlot files.

In: `label index:value index:value …`, plain or gzip, with blank lines and `# comments`. Labels are
1 or +1 for the positive class, −1 or 0 for the other. Out, per row:

    label          float × 1      1 or 0
    ids            ragged uint64  the indices unchanged, so that the table of a job needs one row
                                  more than the largest
    values         ragged float   as many values, digit by digit

Test rows are files of their own, or depend on the text of a row and the seed only. A malformed row
raises an error naming file and line; no row is skipped. `psrt data convert --format libsvm` gives
floats the digits that float32 needs and splits by the lines it writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from psrt.core.errors import DataError
from psrt.core.types import F64, I64, U8
from psrt.data.convert.sharded import (
    Destination,
    Lines,
    ShardedWriter,
    Split,
    drawn,
    lines_of,
    write_split,
)
from psrt.data.formats import libsvm_error
from psrt.data.slots import Slot
from psrt.data.sources import blocks
from psrt.kernels.text import DONE
from psrt.kernels.text import libsvm as kernel

SLOTS = (Slot("label", "float", 1), Slot("ids", "uint64"), Slot("values", "float"))
_ROWS_PER_CALL = 8192


def convert(
    inputs: Sequence[Path | str],
    destination: Destination,
    split: Split,
    tests: Sequence[Path | str] = (),
    on_bytes: Callable[[int], None] = lambda size_bytes: None,
) -> ShardedWriter:
    """Convert `inputs` in order and set a share of them aside, or, if given, `tests` instead."""
    read_seeded = partial(read, seed=split.seed)
    train, held_back = (drawn(paths, read_seeded, on_bytes) for paths in (inputs, tests))
    return write_split(destination, split, train, held_back if tests else None)


def read(path: Path | str, seed: int = 0) -> Iterator[tuple[Lines, F64, int]]:
    """Yield (rows, a number in [0, 1) for each, bytes of text read), valid until the next step."""
    labels, draws = np.empty(_ROWS_PER_CALL, np.uint8), np.empty(_ROWS_PER_CALL, np.float64)
    ends, report = np.empty(_ROWS_PER_CALL, np.int64), np.zeros(kernel.REPORT_CELLS, np.int64)
    line = 1
    for text in blocks(path):
        position = 0
        out = np.empty(len(text) + _ROWS_PER_CALL * kernel.ROW_BYTES, np.uint8)
        while position < len(text):
            report[kernel.POSITION] = position
            kernel.convert_rows(text, len(text), labels, draws, out, ends, seed, report)
            line += int(report[kernel.LINES])
            if report[kernel.STATUS] != DONE:
                raise malformed(path, line, text, report)
            rows, stop = int(report[kernel.ROWS]), int(report[kernel.POSITION])
            yield Lines(labels[:rows], lines_of(out, ends[:rows])), draws[:rows], stop - position
            position = stop


def malformed(path: Path | str, line: int, text: U8, report: I64) -> DataError:
    """Return the error for a row that the kernel refused."""
    error = libsvm_error(str(path), line, text, report, binary=True)
    return DataError(
        f"{error.message} Nothing was written.",
        hint="Repair or remove that row. Ranking (qid:) and multi-class files are not for psrt.",
    )
