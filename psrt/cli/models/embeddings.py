"""The rows of a table as Parquet, NumPy and word2vec text, written page by page.

.parquet   columns `id` and `row`, a list of fixed size; needs pyarrow
.npz       arrays `ids` (n,) int64 and `rows` (n, width) float32; needs memory for the table
.txt .vec  the text format of word2vec (Mikolov et al. 2013): a line `n width`, then a line
           `word v1 … vwidth` for each row; the word of a row is its id, or of a file of words
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from psrt.cli.models.sources import TableSource
from psrt.core.errors import ConfigError
from psrt.core.extras import required
from psrt.core.types import F32, I64

Pages = Iterator[tuple[I64, F32]]
Words = Mapping[int, str]


def write_rows(table: TableSource, words: Words | None, out: Path, target: Path) -> int:
    """Write the rows of a table to `out`, in the format of the name `target`; returns their number.

    With `words` only the rows of their ids are written. Raises `ConfigError` for an unknown name.
    """
    writer = WRITERS.get(target.suffix)
    if writer is None:
        raise ConfigError(
            f"{target} has no known ending.", hint=f"Known: .onnx, {', '.join(WRITERS)}."
        )
    return writer(lambda: _kept(table.pages(), words), words or {}, out)


def read_words(path: Path) -> Words:
    """A word of each line of a file, before its first tab; the id of a word is its line from 0."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return {number: line.split("\t")[0] for number, line in enumerate(lines)}


def _kept(pages: Pages, words: Words | None) -> Pages:
    if words is None:
        yield from pages
        return
    known = np.array(sorted(words), np.int64)
    for ids, rows in pages:
        mine = np.isin(ids, known)
        yield ids[mine], rows[mine]


def _parquet(pages: Callable[[], Pages], words: Words, out: Path) -> int:
    arrow = required("pyarrow", "parquet", "exporting Parquet files")
    parquet = required("pyarrow.parquet", "parquet", "exporting Parquet files")
    count, writer = 0, None
    try:
        for ids, rows in pages():
            made = _arrow_table(arrow, ids, rows, words)
            writer = writer or parquet.ParquetWriter(str(out), made.schema)
            writer.write_table(made)
            count += len(ids)
    finally:
        if writer is not None:
            writer.close()
    return count


def _arrow_table(arrow: Any, ids: I64, rows: F32, words: Words) -> Any:
    flat = arrow.array(np.ascontiguousarray(rows).reshape(-1))
    columns = {"id": arrow.array(ids)}
    if words:
        columns["word"] = arrow.array([words[id_] for id_ in ids.tolist()])
    return arrow.table(
        {**columns, "row": arrow.FixedSizeListArray.from_arrays(flat, rows.shape[1])}
    )


def _numpy(pages: Callable[[], Pages], words: Words, out: Path) -> int:
    parts = list(pages())
    ids: I64 = np.concatenate([np.empty(0, np.int64), *(ids for ids, _ in parts)])
    rows = np.concatenate([rows for _, rows in parts]) if parts else np.empty((0, 0), np.float32)
    order = np.argsort(ids, kind="stable")
    arrays: dict[str, Any] = {"ids": ids[order], "rows": rows[order]}
    if words:
        arrays["words"] = np.array([words[id_] for id_ in arrays["ids"].tolist()])
    with out.open("wb") as file:
        np.savez(file, **arrays)
    return len(ids)


def _word2vec(pages: Callable[[], Pages], words: Words, out: Path) -> int:
    count = width = 0
    for ids, rows in pages():
        count, width = count + len(ids), rows.shape[1]
    with out.open("w", encoding="utf-8") as file:
        file.write(f"{count} {width}\n")
        for ids, rows in pages():
            for id_, row in zip(ids.tolist(), rows.tolist(), strict=True):
                word = words.get(id_, str(id_)).replace(" ", "_")
                file.write(f"{word} {' '.join(f'{value:.9g}' for value in row)}\n")
    return count


WRITERS: Mapping[str, Callable[[Callable[[], Pages], Words, Path], int]] = {
    ".parquet": _parquet,
    ".npz": _numpy,
    ".txt": _word2vec,
    ".vec": _word2vec,
}
