"""MultiSlot lines to the arrays of batches, and to records: the loops behind
`psrt.data.formats.multislot` and `psrt.data.datasets.record_lines`.

One call of `parse_rows` reads as many lines as fit into a batch, slot by slot; reader threads call
it without the GIL. `parse_records` reads values in the order of their records
(`psrt.kernels.text.records`), so memory is filled from start to end, and nothing is moved after.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psrt.kernels.jit import device, kernel
from psrt.kernels.text.multislot import (
    BASE,
    CAPACITY,
    COUNT,
    COUNT_WIDE,
    COUNTS,
    ID_WORDS,
    LINES,
    POSITION,
    RAGGED,
    ROWS,
    RUN,
    RUN_STEP,
    SIZE,
    SLOT_FULL,
    STATUS,
    TIES,
    WORDS,
    Target,
    end_of_line,
    is_blank_line,
    parse_lone_ids,
    parse_slot,
    refused,
)
from psrt.kernels.text.text import DONE


@device
def parse_row(text: Any, at: Any, end: Any, row: Any, offsets: Any, target: Any) -> Any:
    """Read one line into row `row` of each slot; returns (position of its newline, status)."""
    layout, slot = target.layout, 0
    while slot < len(layout):
        run, to = layout[slot, RUN], layout[slot, BASE]
        if run > 0:
            to += row * ID_WORDS
            at, done = parse_lone_ids(text, at, run, to, layout[slot, RUN_STEP], target.words)
            slot += done
            if done == run:
                continue
            to = layout[slot, BASE]
        line, before = layout[slot, COUNTS], row * layout[slot, SIZE]
        if layout[slot, SIZE] == RAGGED:
            before = offsets[line, row]
        used = before * layout[slot, WORDS]
        room = layout[slot, CAPACITY] - used
        at, count, status = parse_slot(text, at, end, slot, to + used, room, target)
        if status != DONE:
            return refused(text, at, slot, status, target.report)
        if layout[slot, SIZE] == RAGGED:
            offsets[line, row + 1] = before + count
        slot += 1
    return end_of_line(text, at)


@kernel(
    "const u1[::1], i8, const i8[:, ::1], f4[::1], i8[:, ::1], i8[:, ::1], i8, i8[::1] -> void",
    group="data",
)
def parse_rows(
    text: Any,
    end: Any,
    layout: Any,
    words: Any,
    offsets: Any,
    ties: Any,
    max_rows: Any,
    report: Any,
) -> None:
    """Read lines of `text` from `report[POSITION]` to `end` until `max_rows` are filled or a stop.

    `layout` (slots, LAYOUT_COLUMNS) places each slot in `words`; `offsets` (ragged slots,
    max_rows + 1). `ties[i]` = (position, index in `words`) of a number that 64 bits cannot round:
    the caller reads it with `float()`. ROWS, LINES and TIES of `report` go on from what they hold,
    and POSITION moves behind the last whole line; on a bad line it is the offending character, and
    SLOT, VALUE and COUNT locate it. Blank lines count as lines only.
    """
    target = Target(layout, words, ties, report)
    at, status = report[POSITION], DONE
    while at < end and report[ROWS] < max_rows:
        ties_before, start = report[TIES], at
        is_blank, at = is_blank_line(text, at)
        if not is_blank:
            at, status = parse_row(text, start, end, report[ROWS], offsets, target)
            if status != DONE:
                report[TIES] = ties_before
                at = at if status < SLOT_FULL else start
                break
            report[ROWS] += 1
        report[LINES] += 1
        at += 1
    report[POSITION], report[STATUS] = at, status


@device
def put_count(counts: Any, row: Any, slot: Any, count: Any) -> Any:
    """A little-endian number of `counts.shape[2]` bytes; returns the status."""
    width = counts.shape[2]
    if width < 8 and count >> (8 * width):
        return COUNT_WIDE
    for place in range(width):
        counts[row, slot, place] = np.uint8(count >> (8 * place))
    return DONE


@device
def parse_record(text: Any, at: Any, end: Any, to: Any, counts: Any, row: Any, target: Any) -> Any:
    """Read one line to `words[to]`…; returns (its newline, behind its words, status)."""
    layout, slot, room = target.layout, 0, len(target.words) - to
    while slot < len(layout):
        run = min(layout[slot, RUN], room // ID_WORDS)
        if run > 0:
            at, done = parse_lone_ids(text, at, run, to, ID_WORDS, target.words)
            slot, to, room = slot + done, to + ID_WORDS * done, room - ID_WORDS * done
            if done == run:
                continue
        at, count, status = parse_slot(text, at, end, slot, to, room, target)
        if status == DONE and layout[slot, SIZE] == RAGGED:
            status = put_count(counts, row, layout[slot, COUNTS], count)
            target.report[COUNT] = count
        if status != DONE:
            at, status = refused(text, at, slot, status, target.report)
            return at, to, status
        used = count * layout[slot, WORDS]
        slot, to, room = slot + 1, to + used, room - used
    at, status = end_of_line(text, at)
    return at, to, status


@kernel(
    "const u1[::1], i8, const i8[:, ::1], f4[::1], i8[::1], u1[:, :, ::1], i8[:, ::1], i8[::1]"
    " -> void",
    group="data",
)
def parse_records(
    text: Any, end: Any, layout: Any, words: Any, ends: Any, counts: Any, ties: Any, report: Any
) -> None:
    """Read lines of `text` as `parse_rows` does, until as many are read as `counts` has rows.

    Record i has `words[ends[i]:ends[i + 1]]`, and for its ragged slots `counts[i]`, little-endian
    numbers. It stops with SLOT_FULL before a line that `words` has no room for, and with COUNT_WIDE
    before one of more values, COUNT, than the bytes of `counts` can hold.
    """
    target = Target(layout, words, ties, report)
    at, status = report[POSITION], DONE
    while at < end and report[ROWS] < len(counts):
        ties_before, start, row = report[TIES], at, report[ROWS]
        is_blank, at = is_blank_line(text, at)
        if not is_blank:
            at, stop, status = parse_record(text, start, end, ends[row], counts, row, target)
            if status != DONE:
                report[TIES] = ties_before
                at = at if status < SLOT_FULL else start
                break
            ends[row + 1] = stop
            report[ROWS] += 1
        report[LINES] += 1
        at += 1
    report[POSITION], report[STATUS] = at, status
