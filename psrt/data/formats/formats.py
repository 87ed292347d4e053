"""The protocols of formats, and a format by its name.

A `TextFormat` parses blocks of lines from any source; a `RowGroupFormat` reads files itself. Job
files and datasets use `format_named`. Formats hold no state of a reading: any number of threads
may share one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from psrt.config.sections import DATA_FORMATS
from psrt.core.errors import ConfigError
from psrt.core.hints import did_you_mean
from psrt.core.types import U8
from psrt.data.formats.arrow import ArrowFormat, ParquetFormat
from psrt.data.formats.criteo_table import criteo_format
from psrt.data.formats.delimited import DelimitedFormat
from psrt.data.formats.libsvm import LibsvmFormat
from psrt.data.formats.multislot import BatchParser
from psrt.data.formats.pairs import PairsFormat
from psrt.data.slots import Batch, Slot


class Parser(Protocol):
    """Cuts the lines of one or more files into batches; belongs to one thread.

    After a block, `held` examples wait for their batch to fill, `line` lines of the file are
    parsed, and the next `skipping` examples will be dropped.
    """

    @property
    def held(self) -> int: ...
    @property
    def line(self) -> int: ...
    @property
    def skipping(self) -> int: ...

    def skip(self, examples: int) -> None:
        """Drop the next `examples` examples."""
        ...

    def begin_file(self, path: str, line: int = 0) -> None:
        """Begin `path` behind its first `line` lines.

        The header of files that have one is fed first, wherever the text begins.
        """
        ...

    def feed(self, text: U8) -> Iterator[Batch]:
        """Parse whole lines, `text` (n,) uint8 ending in a newline; yield each batch that fills.

        Raises `DataError` naming file, line and field.
        """
        ...

    def finish(self) -> Batch | None:
        """Return the last, smaller batch, if any examples are left."""
        ...


@runtime_checkable
class TextFormat(Protocol):
    """Lines of text, an example each."""

    @property
    def slots(self) -> tuple[Slot, ...]: ...

    def parser(self, batch_size: int) -> Parser: ...


class RowGroup(Protocol):
    """Some rows of a binary file in memory, not yet checked."""

    @property
    def rows(self) -> int: ...

    def read(self, start: int, stop: int) -> Batch:
        """Return the examples of some rows; raises `DataError` naming file, row and column."""
        ...


@runtime_checkable
class RowGroupFormat(Protocol):
    """Binary files of row groups, read one at a time."""

    @property
    def slots(self) -> tuple[Slot, ...]: ...

    def groups(self, path: Path | str, first: int = 0) -> Iterator[RowGroup]:
        """Yield the row groups from number `first` on; raises `DataError` for any other file."""
        ...

    def read(
        self, path: Path | str, batch_size: int, row_group: int = 0
    ) -> Iterator[tuple[int, Batch]]:
        """Yield (row group, examples) from a row group on, at most `batch_size` at a time."""
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


def options_of(name: str) -> list[str]:
    """Return the options of a format: the arguments of its maker behind the slots."""
    return list(signature(_MAKERS[name]).parameters)[1:]


def _no_option(name: str, option: str, known: Sequence[str]) -> ConfigError:
    if option == "columns":
        others = [each for each in DATA_FORMATS if "columns" in options_of(each)]
        return ConfigError(
            f"[data.columns] is given, but data.format is {name!r}, whose files have no columns.",
            hint=f'Add format = "csv" to [data], or another that has columns: {", ".join(others)}.',
        )
    has = f"It has: {', '.join(known) or 'none'}."
    return ConfigError(
        f"format {name} has no option {option!r}.", hint=did_you_mean(option, known, has)
    )


def format_named(
    name: str, slots: Sequence[Slot], options: Mapping[str, Any] | None = None, origin: str = ""
) -> Format:
    """Return the format of a name of `DATA_FORMATS`; `options` are those of its class.

    Raises `ConfigError`, which begins with `origin`, the file or flag of the options.
    """
    try:
        if name not in DATA_FORMATS:
            raise ConfigError(
                f"unknown format {name!r}.", hint=f"Known: {', '.join(DATA_FORMATS)}."
            )
        known = options_of(name)
        for option in options or {}:
            if option not in known:
                raise _no_option(name, option, known)
        return _MAKERS[name](slots, **(options or {}))
    except ConfigError as error:
        if not origin:
            raise
        raise ConfigError(f"{origin}: {error.message}", hint=error.hint) from error
