"""Raises the original error on use after failure.

An error raised inside `failing_for_good` is raised again, with its own code and text, by the method
that is called next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from psrt.core.errors import JobError, PsrtError, from_code


class Lifetime:
    """Lasts until the first `end`, which calls `on_end`; messages call its owner `name`."""

    def __init__(self, name: str, on_end: Callable[[], None]) -> None:
        self._name, self._on_end = name, on_end
        self._why: PsrtError | None = None

    @property
    def is_over(self) -> bool:
        return self._why is not None

    def check(self) -> None:
        """Raise if it has ended."""
        if self._why is not None:
            raise from_code(self._why.code, self._why.message, self._why.hint) from self._why

    def end(self, why: PsrtError) -> None:
        if self._why is None:
            self._why = why
            self._on_end()

    @contextmanager
    def failing_for_good(self) -> Iterator[None]:
        """End it with any error raised inside."""
        try:
            yield
        except BaseException as error:
            self.end(self._after(error))
            raise

    def _after(self, error: BaseException) -> PsrtError:
        text = f"the {self._name} was closed after an earlier error: "
        if isinstance(error, PsrtError):
            return from_code(error.code, text + error.message, error.hint)
        return JobError(
            f"{text}{type(error).__name__}: {error}", hint="See the traceback of that error."
        )
