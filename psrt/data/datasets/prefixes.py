"""Words in front of a MultiSlot line: `1 <ins_id>`, then `1 <content>`.

`Prefixed` is the MultiSlot format with such fields. A word is any run of bytes without blanks. Its
batches hold the words alongside the slots, as `Ragged` of bytes with the names `INS_ID` and
`CONTENT`, which no slot can have.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np

from psrt.core.errors import DataError
from psrt.core.tensors import Ragged
from psrt.core.types import I64, U8
from psrt.data.formats import BatchParser, MultiSlotFormat, Rebatcher, shown_at
from psrt.data.slots import Batch, Slot
from psrt.kernels.text import DONE, NEWLINE
from psrt.kernels.text import prefixes as kernel

INS_ID, CONTENT = "1 <ins_id>", "1 <content>"


class Prefixed:
    """MultiSlot lines with `words` in front, in this order."""

    def __init__(self, slots: Sequence[Slot], words: Sequence[str]) -> None:
        self._inner = MultiSlotFormat(slots)
        self._words = tuple(words)

    @property
    def slots(self) -> tuple[Slot, ...]:
        return self._inner.slots

    def parser(self, batch_size: int) -> PrefixedParser:
        return PrefixedParser(self._inner.parser(batch_size), self._words, batch_size)


class PrefixedParser:
    """Blanks out the words before the slots are parsed; belongs to one thread.

    Words and examples have batches of one size, so the n-th batches belong together.
    """

    def __init__(self, inner: BatchParser, words: tuple[str, ...], batch_size: int) -> None:
        self._inner, self._words = inner, words
        self._rebatcher = Rebatcher(batch_size)
        self._full: deque[Batch] = deque()
        self._path, self._lines = "", 0

    def begin_file(self, path: str, line: int = 0) -> None:
        self._inner.begin_file(path, line)
        self._path, self._lines = path, line

    def feed(self, text: U8) -> Iterator[Batch]:
        """Parse whole lines, see `BatchParser.feed`; changes `text`."""
        report, words = self._take_words(text)
        self._full.extend(self._rebatcher.feed(words))
        whole_lines = text
        if report[kernel.STATUS] != DONE:
            whole_lines = text[: report[kernel.LINE_START]]
        for batch in self._inner.feed(whole_lines):
            yield batch | self._full.popleft()
        if report[kernel.STATUS] != DONE:
            raise self._malformed(text, report)
        self._lines += int(report[kernel.LINES])

    @property
    def held(self) -> int:
        return self._inner.held

    @property
    def skipping(self) -> int:
        return self._inner.skipping

    @property
    def line(self) -> int:
        return self._lines

    def skip(self, examples: int) -> None:
        """Drop the next `examples` examples."""
        self._inner.skip(examples)
        self._rebatcher.skip(examples)

    def finish(self) -> Batch | None:
        """Return the last, smaller batch, if any examples are left."""
        batch, words = self._inner.finish(), self._rebatcher.finish()
        return None if batch is None or words is None else batch | words

    def _take_words(self, text: U8) -> tuple[I64, Batch]:
        rows = int(np.count_nonzero(text == NEWLINE))
        taken = np.empty((len(self._words), len(text)), np.uint8)
        ends = np.zeros((len(self._words), rows + 1), np.int64)
        report = np.zeros(kernel.REPORT_CELLS, np.int64)
        kernel.take_words_(text, len(text), taken, ends, report)
        offsets = ends[:, : int(report[kernel.ROWS]) + 1]
        return report, {
            name: Ragged(row[: stops[-1]].copy(), stops)
            for name, row, stops in zip(self._words, taken, offsets, strict=True)
        }

    def _malformed(self, text: U8, report: I64) -> DataError:
        at = int(report[kernel.POSITION])
        where = f"{self._path}, line {self._lines + report[kernel.LINES] + 1}"
        where += f", column {at - report[kernel.LINE_START] + 1}"
        expected = "slots behind the fields in front"
        if report[kernel.STATUS] == kernel.NO_WORD:
            expected = f"`{self._words[report[kernel.FIELD]]}`"
        found = shown_at(text, at)
        return DataError(
            f"{where}: expected {expected}, found {found}.",
            hint=f"A line begins with {', '.join(f'`{word}`' for word in self._words)}.",
        )
