"""libsvm text to batch arrays: the loop behind `psrt.data.formats.libsvm`.

A row is `label index:value index:value …`, perhaps with a `# comment`. As in `text`, the last byte
must be a newline. The caller makes room: a row per newline, an entry per colon.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psrt.kernels.jit import device, kernel
from psrt.kernels.text.libsvm import BAD_INDEX, BAD_LABEL, BAD_VALUE, NO_COLON, check_label, is_end
from psrt.kernels.text.text import DONE, NEWLINE, scan_digits, scan_float, skip_blanks

# Cells of `report`.
STATUS, POSITION, ROWS, LINES, ENTRY, TIES = range(6)
REPORT_CELLS = 6

_COLON, _MAX_DIGITS = 58, 18


@device
def note_tie(ties: Any, report: Any, position: Any, index: Any) -> None:
    ties[report[TIES], 0] = position
    ties[report[TIES], 1] = index
    report[TIES] += 1


@device
def parse_label(text: Any, at: Any, binary: Any) -> Any:
    """Returns (label, at, status, tie)."""
    if binary:
        label, stop, status = check_label(text, at)
        return np.float64(label), stop, status, False
    value, stop, status, tie = scan_float(text, at)
    return value, stop, (status if status == DONE else BAD_LABEL), tie


@device
def parse_entries(
    text: Any, at: Any, count: Any, ids: Any, values: Any, ties: Any, report: Any
) -> Any:
    """Append the entries of a row behind the first `count`; returns (count, at, status)."""
    while True:
        at = skip_blanks(text, at)
        if is_end(text, at):
            return count, at, DONE
        index, _, _, stop = scan_digits(text, at, np.uint64(0), 0)
        if stop == at or stop - at > _MAX_DIGITS:
            return count, at, BAD_INDEX
        if text[stop] != _COLON:
            return count, at, NO_COLON
        value, end, status, tie = scan_float(text, stop + 1)
        if status != DONE:
            return count, stop + 1, BAD_VALUE
        if tie:
            note_tie(ties, report, stop + 1, count)
        ids[count], values[count] = np.int64(index), np.float32(value)
        count += 1
        at = end


@kernel(
    "const u1[::1], i8, b1, f4[::1], i8[::1], i8[::1], f4[::1], i8[:, ::1], i8[::1] -> void",
    group="data",
)
def parse_libsvm_rows(
    text: Any,
    end: Any,
    binary: Any,
    labels: Any,
    offsets: Any,
    ids: Any,
    values: Any,
    ties: Any,
    report: Any,
) -> None:
    """Read all lines of `text[:end]`.

    `labels` (n,), 0 or 1 when `binary`; entries of row i are `ids` and `values` from `offsets[i]`
    to `offsets[i + 1]`. `ties[i]` = (position, entry, or −1 − row for a label) of a number that 64
    bits cannot round: the caller reads it with `float()`. `report` comes back with the rows, lines
    and ties read, and on a bad line with status, position and the entries of it before the bad one.
    """
    at, row, count, status = 0, 0, 0, DONE
    report[LINES] = report[ENTRY] = report[TIES] = 0
    offsets[0] = 0
    while at < end:
        at = skip_blanks(text, at)
        if not is_end(text, at):
            label, stop, status, tie = parse_label(text, at, binary)
            if status != DONE:
                break
            if tie:
                note_tie(ties, report, at, -1 - row)
            count, at, status = parse_entries(text, stop, count, ids, values, ties, report)
            if status != DONE:
                report[ENTRY] = count - offsets[row]
                break
            labels[row] = np.float32(label)
            row += 1
            offsets[row] = count
        while text[at] != NEWLINE:
            at += 1
        at += 1
        report[LINES] += 1
    report[STATUS], report[POSITION], report[ROWS] = status, at, row
