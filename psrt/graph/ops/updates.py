"""The op that trains: role "optimize", one per parameter."""

from __future__ import annotations

from psrt.graph.ops.table import Call, Types, define


@define("update", inputs="parameter gradient", outputs="parameter")
def update(call: Call) -> Types:
    """Apply `gradient` by the parameter's own optimizer and learning rate, in place."""
    return {"parameter": call.one("parameter")}
