"""MultiSlot lines to the arrays of batches, slot by slot: the loop behind
`psrt.data.formats.multislot`.

One call of `parse_rows` reads as many lines as fit into a batch; reader threads call it without the
GIL.
"""

from __future__ import annotations

from typing import Any

from psrt.kernels.jit import device, kernel
from psrt.kernels.text.multislot import (
    BASE,
    CAPACITY,
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
