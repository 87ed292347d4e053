"""Labels outside of the range of their loss: refused with file and line.

A log loss of a label such as 2 has no lower bound, and training on it ends in nonsense. Labels that
come straight from the files are checked in each batch. Only once a bad one is found the files are
read again, up to its line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from psrt.core.errors import DataError
from psrt.core.tensors import Ragged
from psrt.core.types import Array
from psrt.data.formats import Format, TextFormat
from psrt.data.sources import DataFile, FilePart, blocks
from psrt.graph.program import Program
from psrt.kernels.text import NEWLINE

_IN_UNIT = ("sigmoid_cross_entropy_with_logits", "sigmoid_loss", "log_loss", "hinge_loss")


@dataclass(frozen=True)
class LabelRange:
    """Labels of var `name` are from 0 to 1 for op `loss` of `layer`, except `ignored` ones."""

    name: str
    loss: str
    layer: str
    ignored: float | None = None

    def bad(self, values: Array) -> Array:
        """True for each label (n,) that is outside."""
        flat = values.reshape(-1)
        outside: Array = ~((flat >= 0) & (flat <= 1))
        return outside if self.ignored is None else outside & (flat != self.ignored)


def label_ranges(program: Program) -> list[LabelRange]:
    """The ranges of data vars that are labels of a loss."""
    found = {}
    for op in program.ops:
        (name, *_) = op.inputs.get("label", ("",))
        if op.type in _IN_UNIT and name in program.vars and program.vars[name].kind == "data":
            ignored: Any = op.attrs.get("ignore_index")
            found[name] = LabelRange(name, op.type, op.layer, ignored)
    return list(found.values())


def check_labels(
    ranges: Iterable[LabelRange], feed: Mapping[str, Array | Ragged], where: Where
) -> None:
    """Raise `DataError` for a label of a batch that is outside of its range."""
    for each in ranges:
        values = _values(feed[each.name])
        if each.bad(values).any():
            raise where.error(each, float(values.reshape(-1)[int(np.argmax(each.bad(values)))]))


class Where:
    """The files that batches come from, to find the line of a label."""

    def __init__(self, files: Sequence[DataFile], format: Format) -> None:
        self._files, self._format = files, format

    def error(self, range: LabelRange, value: float) -> DataError:
        """The error for the first line with a label outside of `range`, of which one is `value`."""
        place, value = self._found(range, value)
        return DataError(
            f"{place}label {range.name} is {value:g}, but {range.loss} of layer {range.layer} "
            "takes labels from 0 to 1. Training was stopped.",
            hint="Map labels to 0 and 1 ([data.columns] values does), or use another loss.",
        )

    def _found(self, range: LabelRange, value: float) -> tuple[str, float]:
        if isinstance(self._format, TextFormat):
            for file in self._files:
                if found := self._in_file(file, range):
                    return found
        return "", value

    def _in_file(self, file: DataFile, range: LabelRange) -> tuple[str, float] | None:
        """File and line of its first bad label, and the label; None if it has none."""
        assert isinstance(self._format, TextFormat)
        if isinstance(file, FilePart):
            return None
        parser = self._format.parser(1)
        parser.begin_file(str(file))
        for text in blocks(file):
            ends = np.flatnonzero(text == NEWLINE) + 1
            start = 0
            for end in ends.tolist():
                for batch in parser.feed(text[start:end]):
                    values = _values(batch[range.name]).reshape(-1)
                    if range.bad(values).any():
                        bad = float(values[int(np.argmax(range.bad(values)))])
                        return f"{file}, line {parser.line}: ", bad
                start = end
        return None


def _values(fed: Array | Ragged) -> Array:
    return fed.values if isinstance(fed, Ragged) else fed
