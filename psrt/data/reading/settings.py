"""Settings of a dataset: slots, files, batch size, threads, pipe command.

Each setting is a keyword of the constructor and has a setter with PaddlePaddle's name. Values are
checked when they are set; files are searched when they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import PurePath
from typing import Any, NoReturn

from psrt.core.counters import Counters
from psrt.core.errors import ConfigError
from psrt.data.checks import MAX_BATCH_SIZE, at_least
from psrt.data.formats import Format, format_named
from psrt.data.slots import Batch, DataVar, Slot, shaped, slot_of
from psrt.data.sources import (
    AS_IT_IS,
    STDIN,
    DataFile,
    FilePart,
    Files,
    Piped,
    TextSource,
    expand,
    once,
)

DEFAULT_BATCH_SIZE = 32
WAIT_TIMEOUT_S = 120.0


class DatasetSettings:
    """Settings that all datasets share.

    `use_var`: the slots of a line in order, or the data vars they feed. `files`: names, globs or
    URLs, plain, gzip or zstd, or "<stdin>". `threads`: reader threads, at most one per file.
    `pipe_command`: a shell command that gets each file on its standard input and writes MultiSlot
    lines, see `psrt.data.sources.pipe`. `format`: a name of `psrt.data.formats` with its options,
    or a `Format`, whose slots are the default of `use_var`. `wait_timeout_s` bounds the wait for a
    batch; `counters` count bytes, examples and seconds waited.
    """

    def __init__(
        self,
        use_var: Sequence[DataVar | Slot] = (),
        *,
        files: Sequence[DataFile] = (),
        batch_size: int = DEFAULT_BATCH_SIZE,
        threads: int = 1,
        pipe_command: str = AS_IT_IS,
        format: str | Format = "multislot",
        format_options: Mapping[str, Any] | None = None,
        wait_timeout_s: float = WAIT_TIMEOUT_S,
        counters: Counters | None = None,
    ) -> None:
        self.wait_timeout_s = wait_timeout_s
        self._format_given, self._format_options = format, format_options
        self.counters = counters or Counters()
        self.set_use_var(use_var or (() if isinstance(format, str) else format.slots))
        self.set_filelist(files)
        self.set_batch_size(batch_size)
        self.set_thread(threads)
        self.set_pipe_command(pipe_command)

    def set_use_var(self, var_list: Sequence[DataVar | Slot]) -> None:
        """Set the slots of a line, or the data vars they feed, in the order of the line."""
        self._vars = tuple(_listed("set_use_var", var_list, "slots or data vars", _is_var))
        self._slots = tuple(slot_of(var) for var in self._vars)

    def set_filelist(self, filelist: Sequence[DataFile]) -> None:
        """Set the files to read: names, globs or parts of files."""
        given = _listed("set_filelist", filelist, "names", _is_file)
        self._files = tuple(file if isinstance(file, FilePart) else str(file) for file in given)

    def set_batch_size(self, batch_size: int) -> None:
        """Set the examples of a batch; the last batch may have fewer."""
        what = "the batch size of a dataset"
        self._batch_size = at_least(1, what, batch_size, MAX_BATCH_SIZE)

    def set_thread(self, thread_num: int) -> None:
        """Set the number of reader threads; at most one per file runs."""
        self._threads = at_least(1, "the number of threads of a dataset", thread_num)

    def set_pipe_command(self, pipe_command: str) -> None:
        """Set the program that each file goes through; `cat` starts none."""
        if not isinstance(pipe_command, str):
            raise ConfigError(f"the pipe command is {pipe_command!r}, expected a text.")
        if not pipe_command.strip():
            raise ConfigError("the pipe command is empty.", hint='Files as they are: "cat".')
        self._pipe_command = pipe_command.strip()

    def set_hdfs_config(self, fs_name: str, fs_ugi: str) -> NoReturn:
        """Raise `ConfigError`: file systems are named by URL."""
        raise ConfigError(
            f"set_hdfs_config was given {fs_name!r}; psrt has no settings for a file system.",
            hint="Put URLs into the file list (fsspec), or use a pipe command that fetches them.",
        )

    def set_download_cmd(self, download_cmd: str) -> NoReturn:
        """Raise `ConfigError`: psrt does not download."""
        raise ConfigError(
            f"set_download_cmd was given {download_cmd!r}; psrt does not download.",
            hint="set_pipe_command takes any program.",
        )

    def desc(self) -> str:
        """Return the settings as text, one per line."""
        slots = ", ".join(f"{s.name} ({s.dtype} × {s.size or 'any'})" for s in self._slots)
        lines = [f"batch_size: {self._batch_size}", f"thread_num: {self._threads}"]
        lines += [f"pipe_command: {self._pipe_command}", f"slots: {slots}"]
        return "\n".join([*lines, *(f"file: {name}" for name in self._files)])

    def _paths(self) -> list[DataFile]:
        """Return the files; raises `ConfigError` or `DataError` if any is missing."""
        if not self._vars:
            raise ConfigError("the dataset has no slots.", hint="Give it use_var (set_use_var).")
        if not self._files:
            raise ConfigError("the dataset has no files.", hint="Give it files (set_filelist).")
        found: list[DataFile] = []
        for file in self._files:
            found += [file] if isinstance(file, FilePart) or file == STDIN else expand([file])
        return once(found)

    def _format(self) -> Format:
        if isinstance(self._format_given, str):
            return format_named(self._format_given, self._slots, self._format_options)
        return self._format_given

    def _source(self) -> TextSource:
        """Return a new source of text, for one reader."""
        return Files() if self._pipe_command == AS_IT_IS else Piped(self._pipe_command)

    def _shaped(self, batch: Batch) -> Batch:
        return shaped(self._vars, batch)


def _listed(what: str, given: Any, expected: str, legal: Callable[[Any], bool]) -> list[Any]:
    """Return the items of a list; raises `ConfigError` unless each is `legal`."""
    if isinstance(given, Iterable) and not isinstance(given, str | PurePath):
        items = list(given)
        if all(map(legal, items)):
            return items
    raise ConfigError(f"{what} was given {given!r}, expected a list of {expected}.")


def _is_var(item: object) -> bool:
    return isinstance(item, Slot) or hasattr(item, "ragged")


def _is_file(item: object) -> bool:
    return isinstance(item, str | PathLike | FilePart)
