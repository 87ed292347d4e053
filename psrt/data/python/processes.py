"""Reader decorator with processes: `multiprocess_reader` runs readers beside each other.

A process of its own per reader, forked when an iteration begins, so that a reader may be any
function. It sends its examples through a pipe, which holds a few of them, and ends with its reader,
with the iteration, or with the process that iterates.
"""

from __future__ import annotations

import os
import traceback
import warnings
from collections.abc import Generator, Sequence
from contextlib import ExitStack, suppress
from multiprocessing import connection, get_context
from typing import Any

from psrt.core.errors import ConfigError, DataError
from psrt.data.python.decorators import Reader
from psrt.data.python.read_ahead import Iteration

_FORK = get_context("fork")
_EXAMPLE, _END, _ERROR = range(3)


class ReaderProcessError(DataError, ValueError):
    """The process of a reader failed, or was killed."""


def multiprocess_reader(
    readers: Sequence[Reader[Any]], use_pipe: bool = True, queue_size: int = 1000
) -> Iteration[Any]:
    """Read all `readers`, each in a process of its own; an iteration ends when all have.

    With `use_pipe` readers take turns, one example each, as long as they have some; else examples
    come as they are ready. `queue_size` has no effect: a process is as far ahead as its pipe holds.
    Examples travel as pickles, and None is none. Raises `ConfigError` without readers, and
    `ReaderProcessError`, also a `ValueError`, that names the reader that failed.
    """
    if not isinstance(readers, list | tuple) or not readers:
        raise ConfigError(
            f"multiprocess_reader was given {readers!r}.", hint="Give a list of readers."
        )

    def read() -> Generator[Any, None, None]:
        with ExitStack() as stack:
            running: list[_ReaderProcess] = []
            for number, reader in enumerate(readers):
                opened = [each.pipe for each in running]
                running.append(stack.enter_context(_ReaderProcess(number, reader, opened)))
            while running:
                for process in running if use_pipe else _ready(running):
                    kind, value = process.receive()
                    if kind == _END:
                        running = [each for each in running if each is not process]
                    else:
                        yield value

    return read


def _ready(running: Sequence[_ReaderProcess]) -> list[_ReaderProcess]:
    """Wait until some processes have sent something, and return these."""
    pipes = {process.pipe: process for process in running}
    return [pipes[pipe] for pipe in connection.wait(list(pipes)) if pipe in pipes]


class _ReaderProcess:
    """The process of one reader, and the end of its pipe that is read; killed when it is left."""

    def __init__(self, number: int, reader: Reader[Any], opened: Sequence[Any]) -> None:
        self._number = number
        self.pipe, sending = _FORK.Pipe(duplex=False)
        arguments = (reader, sending, [*opened, self.pipe])
        self._process = _FORK.Process(target=_send_all, args=arguments, daemon=True)
        with warnings.catch_warnings():
            # Python warns of forks beside threads; this child runs the reader and nothing else.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._process.start()
        sending.close()

    def receive(self) -> tuple[int, Any]:
        """Return what was sent next: an example, or the end. Raises `ReaderProcessError`."""
        try:
            kind, value = self.pipe.recv()
        except EOFError:
            self._process.join()
            raise ReaderProcessError(
                f"Reader {self._number} of multiprocess_reader, process {self._process.pid}, ended "
                f"with exit code {self._process.exitcode} before its last example.",
                hint="A negative code is that of a signal: −9 if the system was short of memory.",
            ) from None
        if kind == _ERROR:
            raise ReaderProcessError(
                f"Reader {self._number} of multiprocess_reader raised {value}.",
                hint="Call the reader here, without processes, to see where.",
            )
        return kind, value

    def __enter__(self) -> _ReaderProcess:
        return self

    def __exit__(self, *error: object) -> None:
        self.pipe.close()
        self._process.kill()
        self._process.join()
        self._process.close()


def _send_all(reader: Reader[Any], pipe: Any, inherited: Sequence[Any]) -> None:
    """Send the examples of `reader`, then the end or its error; runs in the process of a reader.

    Pipes that were `inherited` by the fork are closed, so that one breaks when its reader is gone.
    """
    for other in inherited:
        other.close()
    with suppress(BrokenPipeError, KeyboardInterrupt):
        try:
            for example in reader():
                if example is None:
                    raise ValueError("None in place of an example")
                pipe.send((_EXAMPLE, example))
        except (BrokenPipeError, KeyboardInterrupt):
            raise
        except BaseException as error:
            pipe.send((_ERROR, _described(error)))
        else:
            pipe.send((_END, None))
    os._exit(0)  # nothing of the parent is to be ended here


def _described(error: BaseException) -> str:
    """Kind and text of an error, and the line that raised it."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    text = "".join(traceback.format_exception_only(error)).strip()
    return f"{text} ({last.filename}, line {last.lineno})"
