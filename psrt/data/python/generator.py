"""Users' own preprocessing: their lines in, MultiSlot text out.

    class Words(psrt.MultiSlotDataGenerator):
        def generate_sample(self, line):
            def samples():
                label, *words = line.split()
                yield [("label", [int(label)]), ("words", [hash_of(word) for word in words])]
            return samples

    Words().run_from_stdin()

Such a script is a dataset's pipe command, `python words.py`: one process for each file. A slot
without values is written `0`, which psrt reads for a ragged slot; PaddlePaddle refuses it, so its
generators pad. A bad sample raises a `DataError` naming its line; an error of the user's own code
gets that line as a note.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from math import isfinite
from numbers import Integral, Rational, Real
from typing import Any, TypeAlias, TypeVar

from psrt.core.errors import ConfigError, DataError
from psrt.data.checks import FLOAT32_MAX

Sample: TypeAlias = "Sequence[tuple[str, Sequence[Any]]]"
Samples: TypeAlias = "Callable[[], Iterable[Sample | None]]"
Given = TypeVar("Given")

_BATCH_SIZE = 32
_MAX_ID = (1 << 64) - 1
_SHOWN_CHARACTERS = 80


class DataGenerator:
    """Runs `generate_sample` over lines and writes the text of each sample."""

    def __init__(self) -> None:
        self._batch_size = _BATCH_SIZE
        self._where = "no line"

    def set_batch(self, batch_size: int) -> None:
        """Set the samples of one call of `generate_batch`; the last call may get fewer."""
        if batch_size < 1:
            raise ConfigError(f"set_batch: a batch has 1 sample or more, not {batch_size}.")
        self._batch_size = batch_size

    def generate_sample(self, line: str | None) -> Samples:
        """Return a function that yields the samples of a line; users define it.

        A sample is a list of `(slot, values)`, always with the slots of the first, in its order;
        None is left out. `line` keeps its line end, and is None in `run_from_memory`.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no generate_sample(line): return a function that gives "
            "samples, [(slot, [value, …]), …]."
        )

    def generate_batch(self, samples: list[Sample]) -> Samples:
        """Return a function that yields samples made of a batch; users may define it, to pad."""
        return lambda: samples

    def text_of(self, sample: Sample) -> str:
        """Return the MultiSlot line of a sample, without its newline."""
        raise NotImplementedError(
            f"{type(self).__name__} has no text_of(sample): take MultiSlotDataGenerator."
        )

    def run_from_stdin(self) -> None:
        """Preprocess the standard input, line by line, to the standard output."""
        self.run(sys.stdin, sys.stdout.write)

    def run_from_memory(self) -> None:
        """Write the samples of `generate_sample(None)`, which need no input."""
        self.run((None,), sys.stdout.write)

    def run(self, lines: Iterable[str | None], write: Callable[[str], object]) -> None:
        """Preprocess any lines; `write` gets a line of text with its newline for each sample."""
        samples = self._samples(lines)
        # Batches that no one changes would hide the line of a refused sample.
        whole = type(self).generate_batch is DataGenerator.generate_batch
        size = 1 if whole else self._batch_size
        while batch := list(islice(samples, size)):
            for sample in self._noted(self.generate_batch, batch):
                write(self.text_of(sample) + "\n")

    def _samples(self, lines: Iterable[str | None]) -> Iterator[Sample]:
        for number, line in enumerate(lines, 1):
            shown = "" if line is None else f" {line.rstrip()[:_SHOWN_CHARACTERS]!r}"
            self._where = "run_from_memory" if line is None else f"line {number}{shown}"
            yield from self._noted(self.generate_sample, line)

    def _noted(self, generate: Callable[[Given], Samples], given: Given) -> Iterator[Sample]:
        """Yield the samples of the user's code; errors get a note with the line."""
        try:
            for sample in generate(given)():
                if sample is not None:  # `zip(…)` was a list in Python 2
                    yield list(sample) if isinstance(sample, Iterator) else sample
        except Exception as error:
            error.add_note(f"psrt: {type(self).__name__} was at {self._where}")
            raise

    def _refused(self, what: str, hint: str) -> DataError:
        return DataError(f"{type(self).__name__}, {self._where}: {what}.", hint=hint)


class MultiSlotStringDataGenerator(DataGenerator):
    """Writes strings unchecked, which is fast; readers find errors."""

    def text_of(self, sample: Sample) -> str:
        return " ".join(chain.from_iterable((str(len(v)), *v) for _, v in sample))


class MultiSlotDataGenerator(DataGenerator):
    """Checks values, numbers of Python or numpy.

    Every sample has the slots of the first. A slot holds ids until its first float; `kinds` has the
    `dtype` for its data var.
    """

    def __init__(self) -> None:
        super().__init__()
        self.kinds: dict[str, str] = {}
        """Slot → `uint64` or `float`, by the samples so far."""

    def text_of(self, sample: Sample) -> str:
        if not isinstance(sample, list | tuple):
            raise self._refused(f"a sample is a list of (slot, values), not {sample!r}", _FORM)
        self._check_slots(sample)
        return " ".join(self._field(slot, values) for slot, values in sample)

    def _check_slots(self, sample: Sample) -> None:
        try:
            names = [slot for slot, _ in sample]
        except (TypeError, ValueError):
            raise self._refused(f"found {sample!r}", _FORM) from None
        if not self.kinds:
            if not names or len(set(names)) < len(names):
                raise self._refused(f"slots need distinct names, found {names}", _FORM)
            self.kinds = dict.fromkeys(names, "uint64")
        if names == list(self.kinds):
            return
        first = list(self.kinds)
        what = f"expected {len(first)} slots, {', '.join(first)}, found {len(names)}"
        raise self._refused(
            f"{what}, {', '.join(map(str, names))}",
            "Give every sample the slots of the first, in its order; a slot may be empty, [].",
        )

    def _field(self, slot: str, values: Sequence[Any]) -> str:
        if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
            raise self._refused(f"slot {slot!r} wants a list of numbers, found {values!r}", _FORM)
        for kind in set(map(type, values)):
            fraction = issubclass(kind, Rational) and not issubclass(kind, Integral)
            if kind is bool or fraction or not issubclass(kind, Real):
                raise self._refused(f"slot {slot!r} holds a {kind.__name__}", _NUMBERS)
            if not issubclass(kind, Integral):
                self.kinds[slot] = "float"
                if not all(map(isfinite, values)):
                    raise self._refused(f"slot {slot!r} holds a nan or an infinity", _NUMBERS)
        if len(values):
            self._check_range(slot, max(values), min(values))
        return " ".join((str(len(values)), *map(str, values)))

    def _check_range(self, slot: str, largest: Any, smallest: Any) -> None:
        """Raise `DataError` for numbers beyond their kind; a negative integer is a float only."""
        is_float = self.kinds[slot] == "float"
        if largest > (FLOAT32_MAX if is_float else _MAX_ID):
            beyond = "the range of float32" if is_float else "the 64 bits of an id"
            raise self._refused(f"slot {slot!r} holds {largest!r}, beyond {beyond}", _RANGE)
        if smallest < -FLOAT32_MAX:
            what = f"slot {slot!r} holds {smallest!r}, beyond the range of float32"
            raise self._refused(what, _RANGE)


_FORM = "A sample is [(slot, [value, …]), …]."
_NUMBERS = "Values are int (an id) or float, finite; MultiSlotStringDataGenerator writes strings."
_RANGE = "No reader takes it: hash ids to 64 bits, and scale floats."
