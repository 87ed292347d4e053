"""Passes of a `BuildStrategy` by Fluid's names, and what psrt does in their place.

psrt rewrites programs by fields of the strategy. Of the passes that users append two have an
effect: `graph_viz_pass` draws the graph, and `multi_batch_merge_pass` joins batches.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from psrt.core.errors import ConfigError
from psrt.core.hints import did_you_mean
from psrt.executor.strategies import BuildStrategy

_OF_FIELDS = {
    "fuse_elewise_add_act_ops": "fuse_elewise_add_act_pass",
    "fuse_all_optimizer_ops": "fuse_all_optimizer_op_pass",
    "memory_optimize": "memory_optimize_pass",
}
_DRAWS, _JOINS = "graph_viz_pass", "multi_batch_merge_pass"
_KNOWN = (*_OF_FIELDS.values(), _DRAWS, _JOINS)


class BuildPass:
    """One pass: a name, and the values that it was given."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.values: dict[str, Any] = {}

    def type(self) -> str:
        """Return the name of the pass."""
        return self._name

    def set(self, name: str, value: Any) -> None:
        """Give the pass a value."""
        self.values[name] = value


class PassBuilder:
    """The passes of a strategy in order: those of its fields, then those that were appended."""

    def __init__(self, build: BuildStrategy) -> None:
        chosen = [name for known, name in _OF_FIELDS.items() if getattr(build, known)]
        self._passes = [BuildPass(name) for name in chosen]

    def all_passes(self) -> list[BuildPass]:
        """Return the passes."""
        return list(self._passes)

    def append_pass(self, name: str) -> BuildPass:
        """Return a new last pass; raises `ConfigError` for one that psrt does not have."""
        return self.insert_pass(len(self._passes), name)

    def insert_pass(self, at: int, name: str) -> BuildPass:
        """Return a new pass number `at`; raises `ConfigError` for one psrt does not have."""
        if name not in _KNOWN:
            near = did_you_mean(name, _KNOWN)
            raise ConfigError(
                f"The pass {name} was to be added to a build strategy, and psrt does not have it.",
                hint=near or "It rewrites programs by the fields of the strategy.",
            )
        made = BuildPass(name)
        self._passes.insert(at, made)
        return made

    def remove_pass(self, at: int) -> None:
        """Drop pass number `at`."""
        del self._passes[at]

    def value_of(self, name: str, key: str, default: Any) -> Any:
        """Return a value that the last pass of this name was given."""
        given = [made.values for made in self._passes if made.type() == name]
        return given[-1].get(key, default) if given else default


@dataclass
class FluidBuildStrategy(BuildStrategy):
    """Fluid's `BuildStrategy`: that of psrt, and `passes`, once a program has asked for them."""

    passes: PassBuilder | None = field(default=None, repr=False, compare=False)

    def _finalize_strategy_and_create_passes(self) -> PassBuilder:
        """Return the passes, which may be added to until a program is compiled."""
        self.passes = self.passes or PassBuilder(self)
        return self.passes


def drawn(build: BuildStrategy | None) -> BuildStrategy | None:
    """Return a strategy that draws the graph where a pass of it says."""
    passes = getattr(build, "passes", None)
    path = passes.value_of(_DRAWS, "graph_viz_path", "") if passes else ""
    return dataclasses.replace(build, debug_graphviz_path=path) if path and build else build


def joined_batches(build: BuildStrategy | None) -> int:
    """Return how many batches of a loader are one run of a replica."""
    passes = getattr(build, "passes", None)
    return int(passes.value_of(_JOINS, "num_repeats", 1)) if passes else 1


__all__ = ["FluidBuildStrategy", "drawn", "joined_batches"]
