"""Damaged data files: read whole and equal, or refused with file and line; never anything else.

A case makes a valid file of one format, `damaged` changes a few of its bytes, and `verdict` reads
it twice: with psrt, and with the plain readers of `tests.support.plain_readers` (for Parquet and
Arrow, pyarrow's own Python objects). It is an error unless both give the same rows, or both refuse
the same line and psrt gave only rows before it.

    python -m tests.support.fuzz_data --minutes 10 [--seed N] [--case NAME]

prints every file that is misread, by its seed, and how many were read and refused.
"""

from __future__ import annotations

import argparse
import faulthandler
import gzip
import io
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import zstandard

from psrt.core.errors import DataError
from psrt.core.tensors import Ragged
from psrt.data.datasets.in_memory import InMemoryDataset
from psrt.data.formats.arrow_ends import check_file
from psrt.data.formats.formats import Format, MultiSlotFormat, format_named
from psrt.data.reading.readers import reader_of
from psrt.data.slots import Batch, Slot
from psrt.data.sources.places import DataFile
from psrt.data.sources.sources import Blocks, Files, blocks
from tests.support import plain_readers as plain
from tests.support.plain_readers import Column, Row

SLOTS = (
    Slot("label", "float", 1),
    Slot("ids", "uint64"),
    Slot("pair", "float", 2),
    Slot("more", "float"),
    Slot("item", "uint64", 1),
)
SPARSE = (Slot("label", "float", 1), Slot("ids", "uint64"), Slot("values", "float"))
WORDS = (*SLOTS, Slot("word", "uint64", 1))
CRITEO = (Slot("click", "float", 1), Slot("dense", "float", 13), Slot("C1", "uint64", 1))

VERDICTS = ("read", "refused", "another header")

TOKENS = [
    *(b"\0", b"\r", b"\r\n", b"\n", b" ", b"\t", b"\v", b",", b";", b"|", b":", b"#", b'"', b'""'),
    *(b"-", b"+", b".", b"e", b"1e400", b"1e-400", b"3.4028236e38", b"nan", b"inf", b"0x1", b"1_0"),
    *(b"18446744073709551615", b"18446744073709551616", b"-9223372036854775808", b"00000000000000"),
    *(b"-9223372036854775809", b"99999999999999999999999999", b"4294967296", b"qid:3", b"-0"),
    *(b"1.00000005960464477539062500000001", b"0." + b"0" * 40 + b"1", b"9" * 30 + b"e-25"),
    *("٣".encode(), b"\xff\xfe", b"\xef\xbb\xbf", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"", b"1 " * 9),
]


# --- files ---


@dataclass(frozen=True)
class Case:
    """`reader` is the oracle; it tells None for a file that is none, without a line."""

    name: str
    slots: tuple[Slot, ...]
    make: Callable[[random.Random], bytes]
    reader: Callable[[bytes], tuple[list[Row], int | None] | None]
    format: Format
    header: bytes = b""


def _id(draw: random.Random) -> int:
    return draw.choice([draw.randrange(10), draw.randrange(1 << 32), draw.randrange(1 << 64)])


def _number(draw: random.Random) -> str:
    value = draw.choice([draw.random(), draw.gauss(0, 1e6), draw.gauss(0, 1e-30), 10.0**30])
    return draw.choice([f"{value!r}", f"{value:.3f}", f"{value:e}", str(draw.randrange(100))])


def _lines(draw: random.Random, line: Callable[[random.Random], str]) -> bytes:
    end = draw.choice(["\n", "\n", "\r\n"])
    text = end.join(line(draw) for _ in range(draw.randrange(12))) + draw.choice(["", end])
    return text.encode()


def _multislot(draw: random.Random) -> str:
    ids = [str(_id(draw)) for _ in range(draw.randrange(4))]
    more = [_number(draw) for _ in range(draw.randrange(3))]
    parts = [f"1 {draw.randrange(2)}", f"{len(ids)}", *ids, f"2 {_number(draw)} {_number(draw)}"]
    return " ".join([*parts, f"{len(more)}", *more, f"1 {_id(draw)}"])


def _libsvm(draw: random.Random) -> str:
    label = draw.choice(["1", "+1", "-1", "0"])
    entries = [f"{draw.randrange(10**9)}:{_number(draw)}" for _ in range(draw.randrange(5))]
    return " ".join([label, *entries]) + draw.choice(["", "", " # comment"])


def _pairs(draw: random.Random) -> str:
    """Words in any order; `pair` may be left out."""
    words = [f"ids:{_id(draw)}" for _ in range(draw.randrange(4))]
    words += [f"item:{_id(draw)}", f"other:{_number(draw)}"]
    words += [f"pair:{_number(draw)}" for _ in range(draw.choice([0, 2]))]
    words += [f"more:{_number(draw)}" for _ in range(draw.randrange(3))]
    draw.shuffle(words)
    return draw.choice([" ", "\t", "  "]).join([str(draw.randrange(2)), *words])


def _cells(draw: random.Random) -> list[str]:
    ids = "|".join(str(_id(draw)) for _ in range(draw.randrange(4)))
    more = "|".join(_number(draw) for _ in range(draw.randrange(3)))
    word = draw.choice(["", "red", "größe", "a b"])
    return [str(draw.randrange(2)), ids, _number(draw), _number(draw), more, str(_id(draw)), word]


def _csv(draw: random.Random) -> str:
    return ",".join(draw.choice([c, f'"{c}"']) for c in _cells(draw))


def _csv_file(draw: random.Random) -> bytes:
    return CSV_HEADER + _lines(draw, _csv)


def _tsv_file(draw: random.Random) -> bytes:
    return _lines(draw, lambda draw: "\t".join(_cells(draw)))


def _criteo(draw: random.Random) -> str:
    integers = [draw.choice(["", str(draw.randrange(-3, 10**6))]) for _ in range(13)]
    words = [draw.choice(["", f"{draw.randrange(1 << 32):08x}"]) for _ in range(26)]
    return "\t".join([str(draw.randrange(2)), *integers, *words])


def _table(draw: random.Random) -> pa.Table:
    rows = range(draw.randrange(1, 12))
    lists = [[_id(draw) >> 1 for _ in range(draw.randrange(4))] for _ in rows]
    floats = [[float(_number(draw)) for _ in range(draw.randrange(3))] for _ in rows]
    words = [draw.choice(["", "red", "größe"]) for _ in rows]
    return pa.table(
        {
            "label": pa.array([float(draw.randrange(2)) for _ in rows], pa.float32()),
            "ids": pa.array(lists, pa.list_(pa.int64())),
            "pair": pa.array([[draw.random(), 1.0] for _ in rows], pa.list_(pa.float64(), 2)),
            "more": pa.array(floats, pa.large_list(pa.float64())),
            "item": pa.array([_id(draw) for _ in rows], pa.uint64()),
            "word": draw.choice([pa.array(words), pa.array(words).dictionary_encode()]),
        }
    )


def _parquet(draw: random.Random) -> bytes:
    out = io.BytesIO()
    checksums = draw.random() < 0.5
    pq.write_table(_table(draw), out, row_group_size=5, write_page_checksum=checksums)
    return out.getvalue()


def _arrow(draw: random.Random) -> bytes:
    out, table = io.BytesIO(), _table(draw)
    new = draw.choice([pyarrow.ipc.new_file, pyarrow.ipc.new_stream])
    with new(out, table.schema) as writer:
        writer.write_table(table, max_chunksize=5)
    return out.getvalue()


# --- oracles of binary files ---


def _plain_table(open_tables: Callable[[bytes], list[Any]]) -> Callable[[bytes], Any]:
    def read(data: bytes) -> tuple[list[Row], int | None] | None:
        try:
            tables = open_tables(data)
            for table in tables:
                table.validate(full=True)
            records = [record for table in tables for record in table.to_pylist()]
            return [_plain_row(record) for record in records], None
        except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, OverflowError):
            return None

    return read


def _plain_row(record: dict[str, Any]) -> Row:
    """Raises `ValueError` for what no slot can take."""
    row: Row = []
    for slot in WORDS:
        found = record[slot.name]
        values = found if isinstance(found, list) else [found]
        if slot.name == "word":
            text = found.encode() if isinstance(found, str) else found or b""
            row.append([plain.hashed(text, 3)])
            continue
        if slot.size not in (None, len(values)) or None in values:
            raise ValueError(slot.name)
        row.append([_plain_value(slot, value) for value in values])
    return row


def _plain_value(slot: Slot, value: Any) -> float | int:
    if slot.dtype == "uint64":
        if not isinstance(value, int):
            raise ValueError(value)
        return value % (1 << 64)
    with np.errstate(over="ignore"):
        if not np.isfinite(np.float32(value)):
            raise ValueError(value)
    return plain.rounded(value)


def _parquet_tables(data: bytes) -> list[Any]:
    file = pq.ParquetFile(io.BytesIO(data), page_checksum_verification=True)
    return [file.read_row_group(i) for i in range(file.num_row_groups)]


def _arrow_tables(data: bytes) -> list[Any]:
    if data.startswith(b"ARROW1"):
        file = pyarrow.ipc.open_file(io.BytesIO(data))
        check_file(cast("IO[bytes]", io.BytesIO(data)))
        return [file.get_batch(i) for i in range(file.num_record_batches)]
    stream, tables = io.BytesIO(data), list[Any]()
    while stream.tell() < len(data) or not data:
        start = stream.tell()
        tables += pyarrow.ipc.open_stream(stream)
        _check_end(data[start : stream.tell()])
    return tables


def _check_end(stream: bytes) -> None:
    """Raises `ValueError` unless there is a marker behind the last message."""
    file, at = io.BytesIO(stream), -1
    messages = pyarrow.ipc.MessageReader.open_stream(file)
    with suppress(StopIteration):
        while True:
            at = file.tell()
            messages.read_next_message()
    if at == len(stream) or not stream.endswith(bytes(4)):
        raise ValueError("a stream without an end")


# --- cases ---

LOGARITHMS = {("csv", "pair"), ("csv-tabs", "pair"), ("criteo", "dense")}
CSV_HEADER = b"label,ids,p0,p1,more,item,word\n"
_COLUMNS = (
    Column((0,), "float"),
    Column((1,), "id", ragged=True, separator=b"|"),
    Column((2, 3), "float", log=True, missing=0.0),
    Column((4,), "float", ragged=True, separator=b"|"),
    Column((5,), "id", missing=7),
    Column((6,), "text", salt=3),
)
_CRITEO_COLUMNS = (
    Column((0,), "label"),
    Column(tuple(range(1, 14)), "float", log=True, missing=0.0),
    Column((14,), "text", salt=1),
)


def _said(names: Sequence[str | int]) -> dict[str, Any]:
    """The section `[data.columns]` for `_COLUMNS`."""
    label, ids, p0, p1, more, item, word = names
    return {
        "label": label,
        "ids": {"column": ids, "separator": "|"},
        "pair": {"columns": [p0, p1], "scale": "log", "missing": 0},
        "more": {"column": more, "separator": "|"},
        "item": {"column": item, "missing": 7},
        "word": {"column": word, "kind": "text", "salt": 3},
    }


_NAMES = CSV_HEADER.decode().strip().split(",")
_CSV = {"columns": _said(_NAMES)}
_TSV = {"columns": _said(range(7)), "delimiter": "\t", "header": False, "quote": ""}
_WORD = {"columns": {"word": {"column": "word", "kind": "text", "salt": 3}}}


def _text_case(
    name: str, slots: tuple[Slot, ...], make: Any, reader: plain.Reader, **options: Any
) -> Case:
    def read(data: bytes) -> tuple[list[Row], int | None] | None:
        text = plain.decompressed(data)
        return None if text is None else reader(text)

    format = format_named(name.partition("-")[0], slots, options)
    return Case(name, slots, make, read, format, CSV_HEADER if name == "csv" else b"")


CASES = {
    case.name: case
    for case in (
        _text_case(
            "multislot", SLOTS, lambda d: _lines(d, _multislot), plain.read_multislot(SLOTS)
        ),
        _text_case("libsvm", SPARSE, lambda d: _lines(d, _libsvm), plain.read_libsvm(True)),
        _text_case(
            "libsvm-numbers",
            SPARSE,
            lambda d: _lines(d, _libsvm),
            plain.read_libsvm(False),
            labels="number",
        ),
        _text_case(
            "pairs",
            SLOTS,
            lambda d: _lines(d, _pairs),
            plain.read_pairs(SLOTS, (0, b"ids", b"pair", b"more", b"item"), 0.5),
            columns={
                "label": {"column": 0, "missing": 0.5},
                "pair": {"column": "pair", "missing": 0.5},
                "more": {"column": "more", "missing": 0.5},
            },
        ),
        _text_case(
            "csv", WORDS, _csv_file, plain.read_delimited(_COLUMNS, b",", b'"', True), **_CSV
        ),
        _text_case(
            "csv-tabs", WORDS, _tsv_file, plain.read_delimited(_COLUMNS, b"\t", b"", False), **_TSV
        ),
        _text_case(
            "criteo",
            CRITEO,
            lambda d: _lines(d, _criteo),
            plain.read_delimited(_CRITEO_COLUMNS, b"\t", b"", False, 40),
        ),
        Case(
            "parquet",
            WORDS,
            _parquet,
            _plain_table(_parquet_tables),
            format_named("parquet", WORDS, _WORD),
        ),
        Case(
            "arrow", WORDS, _arrow, _plain_table(_arrow_tables), format_named("arrow", WORDS, _WORD)
        ),
    )
}


# --- damage and judgement ---


def damaged(data: bytes, draw: random.Random) -> bytes:
    """A few bytes changed, added, removed, repeated or cut off; sometimes compressed before."""
    packed = draw.randrange(8)
    if packed < 2:
        data = [gzip.compress, zstandard.compress][packed](data)
        half = draw.randrange(len(data) + 1) if draw.random() < 0.3 else len(data)
        data = data[:half] + data[half:]
    for _ in range(draw.choice([0, 1, 1, 1, 2, 3])):
        at = draw.randrange(len(data) + 1)
        length = draw.choice([0, 0, 1, 2, draw.randrange(len(data) + 1)])
        what = draw.randrange(4)
        if what == 0:
            data = data[:at] + draw.choice(TOKENS) + data[at + length :]
        elif what == 1:
            data = data[:at] + data[at : at + length] + data[at:]
        elif what == 2 and at < len(data):
            data = data[:at] + bytes([data[at] ^ (1 << draw.randrange(8))]) + data[at + 1 :]
        else:
            data = data[:at] + data[at + length :]
    return data


def verdict(case: Case, data: bytes, path: Path, block_bytes: int = 64) -> str:
    """Return `read` or `refused` for a file; raises `AssertionError` if that is wrong."""
    path.write_bytes(data)
    rows, error = _read(case, path, block_bytes)
    _check_memory(case, path, rows, error)
    expected = case.reader(data)
    if _means_something_else(case, data):
        return "another header"  # it did not crash
    if error is not None:
        assert str(path) in error.message, error.message
    if expected is None:
        assert error is not None, f"{case.name}: a damaged file was read whole"
        return "refused"
    wanted, line = expected
    if line is None:
        assert error is None, f"{case.name}: refused a file that is one: {error}"
    else:
        assert error is not None, f"{case.name}: line {line} is no row, and was read"
        # A file with too few columns is refused as a whole.
        same = _line_in(error) == line or " has no column " in error.message
        assert same, f"{case.name}: line {line}, not {error.message}"
    _assert_rows(case, rows, wanted[: len(rows)])
    assert error or len(rows) == len(wanted), f"{case.name}: {len(rows)} rows of {len(wanted)}"
    return "read" if error is None else "refused"


def _means_something_else(case: Case, data: bytes) -> bool:
    """Damage to a header of columns, or to flags of a gzip header that are there to be ignored."""
    gzip_flags = data[3] if data[:2] == b"\x1f\x8b" and len(data) > 3 else 0
    return bool(gzip_flags & 0xE2) or not (plain.decompressed(data) or b"").startswith(case.header)


class _SmallBlocks(Files):
    """Files in so small blocks that lines span them."""

    def __init__(self, block_bytes: int) -> None:
        self._block_bytes = block_bytes

    def blocks(self, path: DataFile, start: int = 0) -> Blocks:
        return blocks(path, self._block_bytes, start)


def _read(case: Case, path: Path, block_bytes: int) -> tuple[list[Row], DataError | None]:
    batches: list[Batch] = []
    reader = reader_of(case.format, 3, _SmallBlocks(block_bytes), lambda size_bytes: None)
    error = None
    try:
        for batch in reader.read(path):
            batches.append(batch)
        batches += [last] if (last := reader.finish()) else []
    except DataError as refused:
        error = refused
    return [row for batch in batches for row in _rows(case, batch)], error


def _check_memory(case: Case, path: Path, rows: list[Row], error: DataError | None) -> None:
    """Compare the file as records in memory: equal rows, or an equal error text."""
    format = "multislot" if isinstance(case.format, MultiSlotFormat) else case.format
    dataset = InMemoryDataset(case.slots, files=[path], batch_size=5, format=format)
    failed = None
    try:
        dataset.load_into_memory()
    except DataError as refused:
        failed = refused
    assert (failed is None) == (error is None), (case.name, "in memory", failed, "read", error)
    if failed is None:
        batches = dataset.batches()
        _assert_rows(case, [row for batch in batches for row in _rows(case, batch)], rows)
    elif error is not None and not re.search("file is (cut off|damaged)", failed.message):
        # Blocks are larger here: what is wrong with a line may be put in other words.
        assert _line_in(failed) == _line_in(error), (failed.message, error.message)


def _line_in(error: DataError) -> int | None:
    said = re.search(r", line (\d+)", error.message)
    return int(said[1]) if said else None


def _rows(case: Case, batch: Batch) -> list[Row]:
    slots = [_values(slot, batch[slot.name]) for slot in case.slots]
    return [list(row) for row in zip(*slots, strict=True)]


def _values(slot: Slot, fed: Any) -> list[list[Any]]:
    if isinstance(fed, Ragged):
        lists = [fed.values[a:b].tolist() for a, b in pairwise(fed.offsets.tolist())]
    else:
        lists = fed.tolist()
    if slot.dtype == "float":
        return lists
    return [[value % (1 << 64) for value in values] for values in lists]


def _assert_rows(case: Case, found: list[Row], wanted: list[Row]) -> None:
    for row, right in zip(found, wanted, strict=True):
        for slot, values, others in zip(case.slots, row, right, strict=True):
            assert len(values) == len(others), (case.name, slot.name, values, others)
            same = values == others
            if not same and (case.name, slot.name) in LOGARITHMS:
                # A logarithm of another last bit may be rounded to the next float32.
                same = np.allclose(values, others, rtol=2e-7, atol=0)
            assert same, (case.name, slot.name, values, others)


# --- by hand ---


def one(name: str, seed: int, path: Path) -> str:
    draw = random.Random(f"{name} {seed}")
    case = CASES[name]
    data = damaged(case.make(draw), draw)
    return verdict(case, data, path, draw.choice([16, 64, 1 << 16]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0, help="of the first file")
    parser.add_argument("--case", choices=CASES, action="append")
    asked = parser.parse_args()
    faulthandler.enable()
    found: Counter[str] = Counter()
    misread, seed, end = 0, asked.seed, time.monotonic() + 60 * asked.minutes
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "damaged"
        while time.monotonic() < end and misread < 20:
            for name in asked.case or CASES:
                # A file that hangs; the first ones wait for kernels to be compiled.
                faulthandler.dump_traceback_later(600 if seed == asked.seed else 30, exit=True)
                try:
                    found[f"{name} {one(name, seed, path)}"] += 1
                except Exception as error:
                    misread += 1
                    print(f"{name}, seed {seed}: {type(error).__name__}: {error}", flush=True)
            seed += 1
    faulthandler.cancel_dump_traceback_later()
    print(f"{sum(found.values())} files, seeds {asked.seed} … {seed - 1}; {misread} misread")
    print("\n".join(f"  {what}: {count}" for what, count in sorted(found.items())))
    return 1 if misread else 0


if __name__ == "__main__":
    raise SystemExit(main())
