"""Reports of the values that `train_from_dataset` fetches: by steps, or by time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from psrt.fluid.names import Variable
from psrt.fluid.running.values import returned


class FetchHandler:
    """Values of vars, handled every `period_secs` seconds of a training; inherit and override.

    `var_dict` has the vars by the names under which `handler` receives their arrays.
    """

    def __init__(self, var_dict: Any = None, period_secs: float = 60) -> None:
        self.var_dict, self.period_secs = var_dict, period_secs

    def handler(self, res_dict: Mapping[str, Any]) -> None:
        """Print the first element of each array."""
        for name, value in res_dict.items():
            if isinstance(value, np.ndarray):
                sys.stdout.write(f"{name}[0]: {value[0]} ")
        sys.stdout.write("\n")

    @staticmethod
    def help() -> None:
        """Print an example."""
        print(
            "class FetchHandlerExample(FetchHandler):\n"
            "    def handler(self, res_dict):\n"
            '        print(res_dict["auc"])\n\n'
            'handler = FetchHandlerExample(var_dict={"auc": auc_var}, period_secs=60)'
        )


class PeriodicReport:
    """Fetched values of every `period` steps: a printed line, or a call of the handler."""

    def __init__(
        self,
        names: Sequence[str],
        titles: Sequence[str] | None,
        period: int,
        handler: Callable[[Sequence[Any]], None] | None,
    ) -> None:
        self.names = names
        self._titles, self._period = titles or names, period
        self._emit = handler or self._print
        self._steps = 0

    def step(self, values: Sequence[Any]) -> None:
        """Take the values of one more step."""
        self._steps += 1
        if self.names and self._steps % self._period == 0:
            self._emit(returned(values))

    def _print(self, values: Sequence[Any]) -> None:
        pairs = zip(self._titles, values, strict=True)
        print("\t".join(f"{title}: {value}" for title, value in pairs))


class TimedReport:
    """Values for a `FetchHandler`, at the first step behind each period of `clock`, in seconds."""

    def __init__(self, handler: FetchHandler, clock: Callable[[], float] = time.monotonic) -> None:
        vars = handler.var_dict if isinstance(handler.var_dict, Mapping) else {}
        self._vars = {name: var for name, var in vars.items() if isinstance(var, Variable)}
        self.names = [var.name for var in self._vars.values()]
        self._handler, self._clock, self._last = handler, clock, clock()

    def step(self, values: Sequence[Any]) -> None:
        """Take the values of one more step."""
        now = self._clock()
        if now - self._last < self._handler.period_secs:
            return
        self._last = now
        self._handler.handler(dict(zip(self._vars, returned(values), strict=True)))


__all__ = ["FetchHandler", "PeriodicReport", "TimedReport"]
