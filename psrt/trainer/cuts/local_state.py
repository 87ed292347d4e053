"""All parameters of a training without pservers, in a file, to go on from.

The file has pages as parts of cuts have (docs/reference/checkpoint-format.md): counts first, then
each var of the scope, each optimizer state, and rows of tables with their state. Beside `at.json`
it is `at.STEPS.arrays`. It is durable before `at.json` names it, and the one before is removed
then: a crash leaves a state and its parameters.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from psrt.communicator.geo import LocalTable
from psrt.core.errors import ConfigError
from psrt.core.specs import to_plain
from psrt.core.types import Array
from psrt.executor.memory import Scope
from psrt.executor.parallel import ParallelExecutor
from psrt.executor.program import Executor
from psrt.graph.program import Program
from psrt.storage.array_reader import ArrayFileReader, ArrayPage
from psrt.storage.array_writer import ArrayFileWriter
from psrt.storage.local_directory import LocalDirectory
from psrt.storage.seals import Seal

FORMAT, PAGE_ROWS = 1, 1 << 16


class LocalState:
    """The parameters of one training; `tables` are those outside of its scope."""

    def __init__(
        self,
        program: Program,
        scope: Scope,
        executor: Executor | ParallelExecutor,
        tables: Mapping[str, LocalTable],
    ) -> None:
        self._program, self._scope, self._executor, self._tables = program, scope, executor, tables
        self._written: set[str] = set()  # a file of an earlier run may have that name, too

    def write(self, state: str, steps: int, former: Mapping[str, Any]) -> dict[str, Any]:
        """Write all parameters beside the file `state`; returns what that has to say of them.

        `former` is what it said before; that file stays until `remove`.
        """
        path = Path(state)
        name = f"{path.stem}.{steps}.arrays"
        if name in self._written:
            return dict(former)
        with LocalDirectory(path.parent).write(name) as out:
            writer = ArrayFileWriter(out)
            writer.page(self._counts(), {})
            for meta, arrays in self._pages():
                writer.page(meta, arrays)
            seal = writer.finish()
        self._written = {name}
        return {"file": name, "seal": seal.to_plain()}

    def restore(self, state: str, said: Mapping[str, Any]) -> None:
        """Go on from the parameters of which the file `state` has `said`.

        Raises `ConfigError` if they are those of another program, or not there.
        """
        if not said:
            raise ConfigError(
                f"--resume {state} has a position in the data, but no parameters: training would "
                "go on there with initial values. Nothing was trained.",
                hint="Resume a state that psrt trainer --local --state wrote, of this version.",
            )
        path = Path(state)
        with LocalDirectory(path.parent).read(str(said["file"])) as file:
            reader = ArrayFileReader(file, Seal.from_plain(said["seal"]))
            pages = iter(reader)
            steps = self._checked(next(pages), state)
            states: dict[str, tuple[Array, int]] = {}
            for page in pages:
                self._take(page, steps, states, state)
        self._executor.update_states.go_on_whole(states)

    def remove(self, state: str, said: Mapping[str, Any]) -> None:
        """Remove the parameters of a former state."""
        LocalDirectory(Path(state).parent).remove(str(said["file"]))

    def _counts(self) -> dict[str, Any]:
        updates = self._executor.update_states.whole()
        counts = {
            "kind": "counts",
            "format": FORMAT,
            "optimizers": self._optimizers(),
            "updates": {name: steps for name, (_, steps) in updates.items()},
            "table_updates": {name: table.updates for name, table in self._tables.items()},
        }
        return dict(json.loads(json.dumps(counts)))

    def _pages(self) -> Iterator[tuple[dict[str, Any], dict[str, Array]]]:
        for name in self._scope:
            yield {"kind": "var", "name": name}, {"values": self._scope[name]}
        for name, (state, _) in self._executor.update_states.whole().items():
            yield {"kind": "update", "name": name}, {"values": state}
        for name, table in self._tables.items():
            for rows in table.raw_pages(PAGE_ROWS):
                yield {"kind": "rows", "name": name}, {"values": rows}

    def _optimizers(self) -> dict[str, Any]:
        trained = self._program.trained()
        return {p.name: to_plain(p.optimizer) for p in trained if p.optimizer is not None}

    def _checked(self, page: ArrayPage, state: str) -> dict[str, int]:
        """Take the counts; returns the number of updates by parameter."""
        mine = json.loads(json.dumps(self._optimizers()))
        theirs = page.meta["optimizers"]
        for name in {**theirs, **mine}:
            if theirs.get(name) != mine.get(name):
                raise misfit(state, name, "optimizer", theirs.get(name), mine.get(name))
        for name, table in self._tables.items():
            table.updates = page.meta["table_updates"][name]
        return dict(page.meta["updates"])

    def _take(
        self,
        page: ArrayPage,
        steps: Mapping[str, int],
        states: dict[str, tuple[Array, int]],
        state: str,
    ) -> None:
        name, values = page.meta["name"], page.arrays["values"]
        match page.meta["kind"]:
            case "var":
                self._put_var(name, values, state)
            case "update":
                states[name] = values, steps[name]
            case "rows":
                self._put(name, values, state)

    def _put_var(self, name: str, values: Array, state: str) -> None:
        shape = self._scope[name].shape if name in self._scope else None
        if shape != values.shape or self._scope[name].dtype != values.dtype:
            raise misfit(state, name, "shape", values.shape, shape)
        self._scope[name] = values.copy()

    def _put(self, name: str, rows: Array, state: str) -> None:
        try:
            self._tables[name].put_raw(rows.copy())
        except (KeyError, ValueError) as error:
            raise misfit(state, name, "form of rows", str(error), "this job's") from error


def misfit(state: str, name: str, what: str, theirs: object, mine: object) -> ConfigError:
    return ConfigError(
        f"--resume {state} does not fit this job: the {what} of {name!r} is {theirs} there and "
        f"{mine} here. Nothing was trained.",
        hint="Go on with the program that wrote the state.",
    )
