"""libsvm text (also svmlight): `label index:value index:value …` to batches.

Three slots, identified by their kind: a float × 1 takes the label, ragged ids the indices
unchanged, ragged floats the values. Labels are 1 or +1, −1 or 0 (which becomes 0); with the option
`labels = "number"` they are any number. Blank lines and `# comments` are allowed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from psrt.core.errors import ConfigError, DataError
from psrt.core.tensors import Ragged
from psrt.core.types import F32, I64, U8
from psrt.data.formats.multislot import number_at
from psrt.data.formats.rebatching import RebatchingParser
from psrt.data.slots import Batch, Slot
from psrt.kernels.text import DONE, NEWLINE
from psrt.kernels.text import libsvm as kernel

_KINDS: list[tuple[str, int | None]] = [("float", 1), ("uint64", None), ("float", None)]
_COLON = ord(":")
_SHOWN_BYTES = 40


class LibsvmFormat:
    """The format `libsvm`; option `labels`: "binary" (default) or "number"."""

    def __init__(self, slots: Sequence[Slot], labels: str = "binary") -> None:
        self.slots = tuple(slots)
        kinds: list[tuple[str, int | None]] = [(slot.dtype, slot.size) for slot in slots]
        if sorted(kinds, key=repr) != sorted(_KINDS, key=repr):
            raise ConfigError(
                f"libsvm text cannot feed the slots {[slot.name for slot in slots]}.",
                hint="It has a label (float × 1), ids (uint64, ragged) and values (float, ragged).",
            )
        if labels not in ("binary", "number"):
            raise ConfigError(f'labels is {labels!r}, expected "binary" or "number".')
        self._names = [self.slots[kinds.index(kind)].name for kind in _KINDS]
        self._binary = labels == "binary"

    def parser(self, batch_size: int) -> LibsvmParser:
        return LibsvmParser(self._names, self._binary, batch_size)


class LibsvmParser(RebatchingParser):
    """See `psrt.data.formats.Parser`; `names` are those of label, ids and values."""

    def __init__(self, names: Sequence[str], binary: bool, batch_size: int) -> None:
        super().__init__(batch_size)
        self._names, self._binary = names, binary
        self._report: I64 = np.zeros(kernel.REPORT_CELLS, np.int64)
        self._path, self.line = "", 0

    def begin_file(self, path: str, line: int = 0) -> None:
        self._path, self.line = path, line

    def feed(self, text: U8) -> Iterator[Batch]:
        rows = int(np.count_nonzero(text == NEWLINE))
        entries = int(np.count_nonzero(text == _COLON))
        labels, values = np.empty(rows, np.float32), np.empty(entries, np.float32)
        offsets, ids = np.empty(rows + 1, np.int64), np.empty(entries, np.int64)
        ties, report = np.empty((rows + entries, 2), np.int64), self._report
        kernel.parse_libsvm_rows(
            text, len(text), self._binary, labels, offsets, ids, values, ties, report
        )
        settle(text, ties[: report[kernel.TIES]], labels, values)
        line, rows = self.line + int(report[kernel.LINES]), int(report[kernel.ROWS])
        error = None
        if report[kernel.STATUS] != DONE:
            error = libsvm_error(self._path, line + 1, text, report, self._binary)
        self.line, offsets = line, offsets[: rows + 1]
        parts: list[Any] = [labels[:rows].reshape(rows, 1)]
        parts += [Ragged(ids[: offsets[-1]], offsets), Ragged(values[: offsets[-1]], offsets)]
        yield from self._rebatcher.feed(dict(zip(self._names, parts, strict=True)))
        if error:
            raise error


def settle(text: U8, ties: I64, labels: F32, values: F32) -> None:
    """Round in Python the numbers that the kernel could not round."""
    for position, index in ties.tolist():
        number = np.float32(float(number_at(text, position)))
        if index < 0:
            labels[-1 - index] = number
        else:
            values[index] = number


def libsvm_error(path: str, line: int, text: U8, report: I64, binary: bool) -> DataError:
    """Return the error for a row that a kernel of `psrt.kernels.text.libsvm` refused."""
    status, at = int(report[kernel.STATUS]), int(report[kernel.POSITION])
    words = text[at : at + _SHOWN_BYTES].tobytes().split(b"\n")[0].split()
    shown = repr(words[0].decode("utf-8", "backslashreplace")) if words else "nothing"
    where = "label" if status == kernel.BAD_LABEL else f"entry {int(report[kernel.ENTRY]) + 1}"
    expected = {
        kernel.BAD_LABEL: "1 or +1, −1 or 0" if binary else "a finite number",
        kernel.BAD_INDEX: "index:value with an index of at most 18 digits",
        kernel.NO_COLON: "index:value",
        kernel.BAD_VALUE: "a finite number behind the colon",
    }[status]
    return DataError(
        f"{path}, line {line}, {where}: expected {expected}, found {shown}.",
        hint='Other labels: labels = "number" in [data.options]. qid: is not for psrt.',
    )
