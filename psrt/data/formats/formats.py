"""Formats: how the bytes of one file become batches.

A `TextFormat` parses blocks of lines, wherever they come from; a `RowGroupFormat` reads files by
itself. `format_named` is the way in for job files and datasets. Formats hold no state of a reading:
any number of threads may use one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from psrt.config.schema import DATA_FORMATS
from psrt.core.errors import ConfigError
from psrt.core.types import U8
from psrt.data.formats.arrow import ArrowFormat, ParquetFormat
from psrt.data.formats.criteo_table import criteo_format
from psrt.data.formats.delimited import DelimitedFormat
from psrt.data.formats.multislot import BatchParser
from psrt.data.formats.pairs import PairsFormat
from psrt.data.formats.svmlight import LibsvmFormat
from psrt.data.slots import Batch, Slot


class Parser(Protocol):
    """Cuts the lines of one or more files into batches; belongs to one thread.

    Behind a block, `held` examples wait for their batch to fill, `line` lines of the file are
    parsed, and the next `skipping` examples are to be dropped.
    """

    @property
    def held(self) -> int: ...
    @property
    def line(self) -> int: ...
    @property
    def skipping(self) -> int: ...

    def skip(self, examples: int) -> None:
        """Drop the next so many examples."""
        ...

    def begin_file(self, path: str, line: int = 0) -> None:
        """Text fed from now on is of `path`, behind its first `line` lines.

        If files have a header, it is fed before anything else, wherever the text begins.
        """
        ...

    def feed(self, text: U8) -> Iterator[Batch]:
        """Parse whole lines, `text` (n,) uint8 ending in a newline; yields each batch that fills.

        Raises `DataError` naming file, line and field.
        """
        ...

    def finish(self) -> Batch | None:
        """The last, smaller batch, if any examples are left."""
        ...


@runtime_checkable
class TextFormat(Protocol):
    """Lines of text, an example each."""

    @property
    def slots(self) -> tuple[Slot, ...]: ...

    def parser(self, batch_size: int) -> Parser: ...


class RowGroup(Protocol):
    """Some rows of a binary file that are in memory, not yet looked at."""

    @property
    def rows(self) -> int: ...

    def read(self, start: int, stop: int) -> Batch:
        """The examples of some of them; raises `DataError` naming file, row and column."""
        ...


@runtime_checkable
class RowGroupFormat(Protocol):
    """Binary files of row groups, which are read one at a time."""

    @property
    def slots(self) -> tuple[Slot, ...]: ...

    def groups(self, path: Path | str, first: int = 0) -> Iterator[RowGroup]:
        """The row groups from number `first` on; raises `DataError` for what is no such file."""
        ...

    def read(
        self, path: Path | str, batch_size: int, row_group: int = 0
    ) -> Iterator[tuple[int, Batch]]:
        """The examples from a row group on, `batch_size` or fewer at a time, and their group."""
        ...


Format: TypeAlias = TextFormat | RowGroupFormat


class MultiSlotFormat:
    """`n v1 … vn` for each slot in order, see `psrt.data.formats.multislot`."""

    def __init__(self, slots: Sequence[Slot]) -> None:
        self.slots = tuple(slots)

    def parser(self, batch_size: int) -> BatchParser:
        return BatchParser(self.slots, batch_size)


_MAKERS: dict[str, Callable[..., Format]] = {
    "multislot": MultiSlotFormat,
    "libsvm": LibsvmFormat,
    "csv": DelimitedFormat,
    "pairs": PairsFormat,
    "criteo": criteo_format,
    "parquet": ParquetFormat,
    "arrow": ArrowFormat,
}
_OPTIONS: dict[str, tuple[str, ...]] = {
    "libsvm": ("labels",),
    "csv": ("columns", "delimiter", "header", "quote", "names"),
    "pairs": ("columns", "delimiter", "order"),
    "criteo": ("label",),
    "parquet": ("columns",),
    "arrow": ("columns",),
}


def format_named(
    name: str,
    slots: Sequence[Slot],
    options: Mapping[str, Any] | None = None,
    origin: str = "",
) -> Format:
    """The format of a name of `DATA_FORMATS`; `options` are those of its class.

    A mistake is a `ConfigError` that begins with `origin`, the file that gives them.
    """
    try:
        if name not in DATA_FORMATS:
            raise ConfigError(
                f"unknown format {name!r}.", hint=f"Known: {', '.join(DATA_FORMATS)}."
            )
        known = _OPTIONS.get(name, ())
        for option in options or {}:
            if option not in known:
                raise ConfigError(
                    f"format {name} has no option {option!r}.",
                    hint=f"It has: {', '.join(known) or 'none'}.",
                )
        return _MAKERS[name](slots, **(options or {}))
    except ConfigError as error:
        if not origin:
            raise
        raise ConfigError(f"{origin}: {error.message}", hint=error.hint) from error
