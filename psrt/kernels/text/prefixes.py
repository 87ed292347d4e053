"""Words in front of the slots of a line, `1 <word>` each, moved out of the way of the parser."""

from __future__ import annotations

from typing import Any

import numpy as np

from psrt.core.types import I64, U8
from psrt.kernels.jit import device, kernel
from psrt.kernels.lowlevel import mix64
from psrt.kernels.text.criteo import FNV_START, hash_bytes
from psrt.kernels.text.text import DONE, NEWLINE, RETURN, SPACE, ZERO, byte, skip_blanks

# Reasons of a stop of `take_words_`.
NO_WORD, NO_SLOTS = 1, 2

# Cells of `report`; POSITION is where it stopped, LINE_START the start of that line.
STATUS, POSITION, LINE_START, ROWS, LINES, FIELD = range(6)
REPORT_CELLS = 6


@device
def take_word_(text: U8, at: int, taken: U8, to: int) -> Any:
    """Move the word at `at`, leaving blanks; returns (behind it, its end in `taken`)."""
    while byte(text, at) > SPACE:
        taken[to] = byte(text, at)
        text[at] = SPACE
        at, to = at + 1, to + 1
    return at, to


@device
def is_one(text: U8, at: int) -> Any:
    return byte(text, at) == ZERO + 1 and byte(text, at + 1) <= SPACE


@device
def take_fields_(text: U8, at: int, row: int, taken: U8, ends: I64, report: I64) -> Any:
    """The fields of one line; returns (behind them, status)."""
    for field in range(len(taken)):
        at = skip_blanks(text, at)
        stop = ends[field, row]
        if is_one(text, at):
            text[at] = SPACE
            at, stop = take_word_(text, skip_blanks(text, at), taken[field], stop)
        if stop == ends[field, row]:
            report[FIELD] = field
            return at, NO_WORD
        ends[field, row + 1] = stop
    at = skip_blanks(text, at)
    ended = byte(text, at) == NEWLINE or byte(text, at) == RETURN
    return at, (NO_SLOTS if ended else DONE)


@kernel("u1[::1], i8, u1[:, ::1], i8[:, ::1], i8[::1] -> void", group="data")
def take_words_(text: U8, end: int, taken: U8, ends: I64, report: I64) -> None:
    """Move the first fields of each line of `text` to `taken` (fields, end), leaving blanks.

    Word `field` of row i ends at `ends[field, i + 1]` of its row of `taken`; `ends[:, 0]` is 0.
    Blank lines are no rows. `text[end - 1]` is a newline. Stops at a line that has no such fields,
    or nothing else.
    """
    at, status = 0, DONE
    while at < end and status == DONE:
        report[LINE_START] = at
        at = skip_blanks(text, at)
        if byte(text, at) == RETURN and byte(text, at + 1) == NEWLINE:
            at += 1
        if byte(text, at) != NEWLINE:
            at, status = take_fields_(text, at, report[ROWS], taken, ends, report)
            report[ROWS] += status == DONE
        if status == DONE:
            while byte(text, at) != NEWLINE:
                at += 1
            report[LINES] += 1
            at += 1
    report[POSITION], report[STATUS] = at, status


@kernel("const u1[::1], const i8[::1], i8[::1] -> void", group="data")
def hash_words(words: U8, offsets: I64, out: I64) -> None:
    """`out` (n,) = 64 bits of FNV-1a, mixed, of each of the words between `offsets` (n + 1)."""
    for i in range(len(out)):
        out[i] = np.int64(mix64(hash_bytes(words, offsets[i], offsets[i + 1], FNV_START)))
