"""Optimizer states and step counts of the parameters that an executor updates itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from psrt.core.types import Array
from psrt.executor.compute import DenseUpdate, LocalRowUpdate
from psrt.executor.program.compiled import Compiled


class UpdateStates:
    """The updates of an executor; `programs` are those of its replicas, whose states are equal."""

    def __init__(self, programs: Sequence[Compiled]) -> None:
        self._programs = programs

    def current(self) -> dict[str, tuple[Array, int]]:
        """State (vectors, size), not copied, and number of updates of each parameter."""
        found: dict[str, tuple[Array, int]] = {}
        for program in self._programs:
            for name, update in program.updates.items():
                if isinstance(update, DenseUpdate):
                    found.setdefault(name, (update.state, update.pace.steps))
        return found

    def whole(self) -> dict[str, tuple[Array, int]]:
        """State, not copied, and number of updates of each parameter, tables among them.

        That of a table is (height, header and state words).
        """
        found = self.current()
        for name, update in self._row_updates():
            found.setdefault(name, (update.state(), update.pace.steps))
        return found

    def go_on_whole(self, states: Mapping[str, tuple[Array, int]]) -> None:
        """Continue with copies of `states` of `whole`, which fit."""
        self.go_on(states)
        for name, update in self._row_updates():
            if name in states:
                update.state()[:], update.pace.steps = states[name]

    def _row_updates(self) -> Iterator[tuple[str, LocalRowUpdate]]:
        for program in self._programs:
            for name, update in program.updates.items():
                if isinstance(update, LocalRowUpdate):
                    yield name, update

    def go_on(self, states: Mapping[str, tuple[Array, int]]) -> None:
        """Continue with copies of `states`, which fit; updates without one stay as they are."""
        for program in self._programs:
            for name, update in program.updates.items():
                if isinstance(update, DenseUpdate) and name in states:
                    update.state[:], update.pace.steps = states[name]
