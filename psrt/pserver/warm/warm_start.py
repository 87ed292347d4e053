"""The warm start of one pserver: tables begin with values of a cut or of a saved model.

The first REGISTER reads the source's documents and matches names; later ones use its matches. A
table reads its part of the source when it is created.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from typing import Any

from psrt.core.errors import ConfigError
from psrt.core.specs import DenseTableSpec, TableSpec, WarmRule, WarmStart, from_json
from psrt.kernels.jit import warm_up
from psrt.pserver.saved import open_state
from psrt.pserver.tables import DenseTable
from psrt.pserver.warm.filling import fill_dense, fill_rows_of
from psrt.pserver.warm.matching import Matches, matches_of, name_of
from psrt.pserver.warm.report import check, text_of


class WarmTables:
    """Matches of one warm start by its text, which is equal for all trainers of a job."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._text, self._matches, self._report = "", Matches(), ""

    def open(self, text: str, parameters: Sequence[TableSpec]) -> str:
        """Match the whole parameters of a job with the source of a warm start; return a report.

        Raises `ConfigError` if the text is no warm start, if there is no such source, or with
        WARM_START_MISFIT if it does not fit; `DataError` or `StorageError` for damaged files.
        """
        with self._lock:
            if text != self._text:
                warm = _read(text)
                source = open_state(warm.source)
                matches = matches_of(parameters, source, warm)
                check(matches, source, warm)
                self._matches, self._report = matches, text_of(matches, source)
                self._text = text
            return self._report

    def fill(self, table: Any) -> None:
        """Fill a new table from the parameter that it matches; others keep initial values."""
        match = self._matches.found.get(name_of(table.spec))
        if match is None:
            return
        warm_up(["freeze"])
        saved: Any = match.saved
        if isinstance(table.spec, DenseTableSpec):
            assert isinstance(table, DenseTable)
            fill_dense(table, saved, match)
        else:
            fill_rows_of(table, saved, match)


def _read(text: str) -> WarmStart:
    """Parse a warm start, which may come from any process."""
    warm = from_json(text)
    if not isinstance(warm, WarmStart) or not all(isinstance(r, WarmRule) for r in warm.rules):
        raise ConfigError(
            f"REGISTER holds a {type(warm).__name__} that is no warm start. Nothing was trained.",
            hint="Install the same psrt release on trainers and pservers.",
        )
    for pattern in (*(r.parameter for r in warm.rules if r.is_pattern), *warm.unused):
        _check_pattern(pattern)
    return warm


def _check_pattern(pattern: str) -> None:
    try:
        re.compile(pattern)
    except (re.error, TypeError) as error:
        raise ConfigError(
            f"{pattern!r} of the warm start is no regular expression: {error}. Nothing was "
            "trained.",
            hint="Correct the pattern of a rule, or of unused, in warm_start_map.",
        ) from error
