"""The public Criteo table (Kaggle 2014, 1TB logs) as MultiSlot files.

In: tab-separated `label`, I1 … I13, C1 … C26, plain or gzip; gaps allowed in I and C. Out, per row:

    click          float × 1
    dense_input    float × 13   sign(x) · ln(1 + |x|), a missing integer is 0
    C1 … C26       one id each  63-bit hash of (slot, text); missing has an id of its own per slot
    I1 … I13       one id each  only with `bucket_integers`: logarithmic buckets, missing is one

The test split depends on the text of a row and the seed only, not on order or files. A row with
another number of fields, a label other than 0 or 1 or a malformed integer raises an error naming
file and line; no row is skipped. `psrt data convert --format criteo` gives floats all their digits
and splits by the lines it writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from psrt.core.errors import DataError
from psrt.core.types import F32, F64, I64, U8
from psrt.data.convert.sharded import (
    Destination,
    ExampleRows,
    ShardedWriter,
    Split,
    drawn,
    write_split,
)
from psrt.data.slots import Slot
from psrt.data.sources import blocks
from psrt.kernels.text import DONE
from psrt.kernels.text import criteo as kernel

DENSE = kernel.INTEGERS
_ROWS_PER_CALL = 8192


def slots(bucket_integers: bool = False, ids_per_slot: int | None = 1) -> tuple[Slot, ...]:
    """Return the slots of a converted file, in order."""
    names = [f"C{i}" for i in range(1, kernel.CATEGORIES + 1)]
    names += [f"I{i}" for i in range(1, DENSE + 1)] if bucket_integers else []
    dense = (Slot("click", "float", 1), Slot("dense_input", "float", DENSE))
    return dense + tuple(Slot(name, "uint64", ids_per_slot) for name in names)


def convert(
    inputs: Sequence[Path | str],
    destination: Destination,
    split: Split,
    bucket_integers: bool = False,
    on_bytes: Callable[[int], None] = lambda size_bytes: None,
) -> ShardedWriter:
    """Convert `inputs` in order; `bucket_integers` adds integers as ids."""
    read_seeded = partial(read, seed=split.seed, bucket_integers=bucket_integers)
    return write_split(destination, split, drawn(inputs, read_seeded, on_bytes))


def read(
    path: Path | str, seed: int = 0, bucket_integers: bool = False
) -> Iterator[tuple[ExampleRows, F64, int]]:
    """Yield (rows, draws, bytes of text read), valid until the next step."""
    labels, draws = np.empty(_ROWS_PER_CALL, np.uint8), np.empty(_ROWS_PER_CALL, np.float64)
    integers: I64 = np.empty((_ROWS_PER_CALL, DENSE), np.int64)
    ids: I64 = np.empty((_ROWS_PER_CALL, kernel.CATEGORIES), np.int64)
    report, line = np.zeros(kernel.REPORT_CELLS, np.int64), 1
    for text in blocks(path):
        position = 0
        while position < len(text):
            report[kernel.POSITION] = position
            kernel.parse_criteo_rows(text, len(text), labels, integers, ids, draws, seed, report)
            count = int(report[kernel.ROWS])
            if report[kernel.STATUS] != DONE:
                raise malformed(path, line + count, text, report)
            stop = int(report[kernel.POSITION])
            rows = _rows(labels[:count], integers[:count], ids[:count], bucket_integers)
            yield rows, draws[:count], stop - position
            line, position = line + count, stop


def _rows(labels: U8, integers: I64, ids: I64, bucket_integers: bool) -> ExampleRows:
    if bucket_integers:
        buckets = np.empty_like(integers)
        kernel.bucket_integers(integers, kernel.CATEGORIES + 1, buckets)
        ids = np.concatenate([ids, buckets], axis=1)
    return ExampleRows(labels, dense_values(integers), ids)


def dense_values(integers: I64) -> F32:
    """Return sign(x) · ln(1 + |x|) of `integers` (n, 13); MISSING becomes 0."""
    values = np.where(integers == kernel.MISSING, 0, integers).astype(np.float64)
    return np.asarray(np.sign(values) * np.log1p(np.abs(values)), np.float32)


def malformed(path: Path | str, line: int, text: U8, report: I64) -> DataError:
    """Return the error for a row that the kernel refused."""
    status, at, _, field = report.tolist()
    rest = text[at : at + 64].tobytes()
    shown = repr(rest.split(b"\n")[0].split(b"\t")[0].decode("utf-8", "backslashreplace"))
    where = f"{path}, line {line}"
    if status == kernel.WRONG_FIELDS:
        return DataError(
            f"{where}: expected {kernel.FIELDS} fields between tabs (label, I1 … I13, C1 … C26), "
            f"found {field}. Nothing was written.",
            hint="39 fields may be the unlabelled test set of the challenge, which has no clicks.",
        )
    name, expected = f"I{field}", "an integer or nothing"
    if status == kernel.BAD_LABEL:
        name, expected = "label", "0 or 1"
    return DataError(
        f"{where}, field {name}: expected {expected}, found {shown}. Nothing was written.",
        hint="Repair or remove that row.",
    )
