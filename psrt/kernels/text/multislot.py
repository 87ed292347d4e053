"""The slots of a MultiSlot line: `n v1 … vn`, read from text to words of memory.

Values go to `words` of 4 bytes: a float takes one, an id two. Most text has little but slots of one
id, and one blank between numbers: `parse_lone_ids` reads these alone, and leaves the rest to loops
that handle all cases and report errors.

For the kernels of `multislot_lines`, a line is either taken whole or not at all; a stop names its
position, slot and reason, and everything before that line is in place. Promised by the caller, so
that no inner loop tests for the end: the last character of the text is a newline.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from psrt.kernels.jit import device
from psrt.kernels.lowlevel import eight_bytes, put_eight_bytes
from psrt.kernels.text.digits import reaches, short_decimal, short_whole
from psrt.kernels.text.text import (
    DONE,
    NEWLINE,
    RETURN,
    SPACE,
    ZERO,
    byte,
    scan_digits,
    scan_float,
    scan_id,
    skip_blanks,
)

# Reasons of a stop; these and the codes of `text` are put in words in
# `psrt.data.formats.multislot`.
LINE_ENDED = 16
BAD_COUNT = 17
WRONG_COUNT = 18
COUNT_TOO_LARGE = 19
LINE_GOES_ON = 20
SLOT_FULL = 21
TIES_FULL = 22
COUNT_WIDE = 23

# Columns of `layout`, one row per slot. WORDS: of a value. COUNTS: the place of a ragged slot among
# those. RUN: how many slots from here on are one id each. Of batches alone, in words: BASE, where a
# slot begins; CAPACITY, what it has room for; RUN_STEP, from a slot of a run to the next.
IS_FLOAT, WORDS, SIZE, COUNTS, RUN, BASE, CAPACITY, RUN_STEP = range(8)
LAYOUT_COLUMNS = 8
RAGGED = -1
WORD_BYTES, ID_WORDS = 4, 2
_TWO_BYTES, _ONE_BLANK = np.uint64(0xFFFF), np.uint64(ord("1") | ord(" ") << 8)

# Cells of `report`.
STATUS, POSITION, ROWS, LINES, SLOT, VALUE, COUNT, TIES = range(8)
REPORT_CELLS = 8


class Target(NamedTuple):
    """Targets of values; `ties`, `report`: see `psrt.kernels.text.multislot_lines.parse_rows`."""

    layout: Any
    words: Any
    ties: Any
    report: Any


@device
def note_tie(target: Any, position: Any, word: Any) -> Any:
    count = target.report[TIES]
    if count == len(target.ties):
        return TIES_FULL
    target.ties[count, 0] = position
    target.ties[count, 1] = word
    target.report[TIES] = count + 1
    return DONE


@device
def quick_floats(text: Any, at: Any, to: Any, done: Any, count: Any, words: Any) -> Any:
    """Read on behind `done` of `count` values, as long as they are short: (at, done)."""
    while done < count and reaches(text, at):
        number, stop = short_decimal(text, at)
        if stop == at:
            break
        words[np.uint64(to + done)] = np.float32(number)
        done += 1
        at = stop
        if byte(text, at) != SPACE:
            break
        at += 1
    return at, done


@device
def parse_floats(text: Any, at: Any, to: Any, count: Any, target: Any) -> Any:
    """Read `count` values to `words[to]`…; returns (at, status)."""
    done = 0
    while done < count:
        at = skip_blanks(text, at)
        at, done = quick_floats(text, at, to, done, count, target.words)
        if done == count:
            break
        at = skip_blanks(text, at)
        number, stop, status, tie = scan_float(text, at)
        if tie:
            status = note_tie(target, at, to + done)
        if status != DONE:
            target.report[VALUE] = done
            return at, status
        target.words[np.uint64(to + done)] = np.float32(number)
        done += 1
        at = stop
    return at, DONE


@device
def quick_ids(text: Any, at: Any, to: Any, done: Any, count: Any, words: Any) -> Any:
    """Read on behind `done` of `count` values, one blank between them: (at, done)."""
    while done < count and reaches(text, at):
        pattern, stop = short_whole(text, at)
        if stop == at:
            break
        put_eight_bytes(words, to + ID_WORDS * done, pattern)
        done += 1
        at = stop
        if byte(text, at) != SPACE:
            break
        at += 1
    return at, done


@device
def parse_ids(text: Any, at: Any, to: Any, count: Any, target: Any) -> Any:
    """Read `count` values to `words[to]`…; returns (at, status)."""
    done = 0
    while done < count:
        at = skip_blanks(text, at)
        at, done = quick_ids(text, at, to, done, count, target.words)
        if done == count:
            break
        at = skip_blanks(text, at)
        pattern, stop, status = scan_id(text, at)
        if status != DONE:
            target.report[VALUE] = done
            return at, status
        put_eight_bytes(target.words, to + ID_WORDS * done, pattern)
        done += 1
        at = stop
    return at, DONE


@device
def parse_lone_ids(text: Any, at: Any, count: Any, to: Any, step: Any, words: Any) -> Any:
    """Read `1 v` for up to `count` slots, `step` words apart from `words[to]` on: (at, how many).

    Slots that are written in another way are left where they begin, for `parse_slot`.
    """
    done = 0
    while done < count and reaches(text, at):
        if eight_bytes(text, at) & _TWO_BYTES != _ONE_BLANK:
            break
        pattern, stop = short_whole(text, at + 2)
        if stop == at + 2:
            break
        put_eight_bytes(words, to, pattern)
        to += step
        done += 1
        at = stop
        if byte(text, at) != SPACE:
            break
        at += 1
    return at, done


@device
def scan_count(text: Any, at: Any, end: Any, size: Any) -> Any:
    """Read the number in front of a slot's values; returns (count, at, status)."""
    digit = np.uint8(byte(text, at) - ZERO)
    if digit <= 9 and byte(text, at + 1) == SPACE and (size == RAGGED or digit == size):
        return np.int64(digit), at + 2, DONE
    count, _, _, stop = scan_digits(text, at, np.uint64(0), 0)
    if stop == at or byte(text, stop) > SPACE:
        return 0, at, BAD_COUNT
    # Each value takes a blank and a digit: a larger count cannot be true, and could overflow.
    if count > np.uint64(end - at):
        return 0, at, COUNT_TOO_LARGE
    if size != RAGGED and count != np.uint64(size):
        return np.int64(count), at, WRONG_COUNT
    return np.int64(count), stop, DONE


@device
def parse_slot(text: Any, at: Any, end: Any, slot: Any, to: Any, room: Any, target: Any) -> Any:
    """Read one `n v1 … vn` to `words[to]`…, of which `room` are free; returns (at, n, status)."""
    at = skip_blanks(text, at)
    count, stop, status = scan_count(text, at, end, target.layout[slot, SIZE])
    if status == DONE and count * target.layout[slot, WORDS] > room:
        status = SLOT_FULL
    if status != DONE:
        target.report[VALUE], target.report[COUNT] = -1, count
        return at, count, status
    if target.layout[slot, IS_FLOAT]:
        at, status = parse_floats(text, stop, to, count, target)
    else:
        at, status = parse_ids(text, stop, to, count, target)
    if status != DONE:
        target.report[COUNT] = count
    return at, count, status


@device
def refused(text: Any, at: Any, slot: Any, status: Any, report: Any) -> Any:
    """(position of an error, or of a want of memory; the reason)."""
    report[SLOT] = slot
    at = skip_blanks(text, at)
    ended = byte(text, at) == NEWLINE or byte(text, at) == RETURN
    return at, (LINE_ENDED if ended and status < SLOT_FULL else status)


@device
def end_of_line(text: Any, at: Any) -> Any:
    """(the newline behind the last slot, status)."""
    is_end, at = is_blank_line(text, at)
    return at, (DONE if is_end else LINE_GOES_ON)


@device
def is_blank_line(text: Any, at: Any) -> Any:
    """(True if nothing is left of the line, its newline if so)."""
    at = skip_blanks(text, at)
    if byte(text, at) == RETURN and byte(text, at + 1) == NEWLINE:
        at += 1
    return byte(text, at) == NEWLINE, at
