"""The dependency graph of a parallel executor as Graphviz dot."""

from __future__ import annotations

import json
from pathlib import Path

from psrt.core.errors import ConfigError
from psrt.executor.parallel.ssa import SsaGraph, SsaNode

_COLOURS = {"forward": "white", "backward": "lightyellow", "clip_and_decay": "lightblue"}


def to_dot(graph: SsaGraph) -> str:
    """One box per node, one cluster per replica, and an arrow to each node that waits for it."""
    lines = ["digraph psrt {", "  node [shape=box style=filled fillcolor=white];"]
    for replica in sorted({node.replica for node in graph.nodes}):
        lines.append(f'  subgraph cluster_{replica} {{ label="replica {replica}";')
        lines += [_box(at, n) for at, n in enumerate(graph.nodes) if n.replica == replica]
        lines.append("  }")
    for at, successors in enumerate(graph.successors):
        lines += [f"  n{at} -> n{successor};" for successor in successors]
    return "\n".join([*lines, "}", ""])


def draw(graph: SsaGraph, path: Path) -> None:
    """Write the dot text; raises `ConfigError` when the file cannot be written."""
    try:
        path.write_text(to_dot(graph))
    except OSError as error:
        raise ConfigError(
            f"debug_graphviz_path {path} cannot be written: {error.strerror}.",
            hint="Name a file in a directory that exists, or leave the path empty.",
        ) from error


def _box(at: int, node: SsaNode) -> str:
    if node.op is None:
        return f"    n{at} [label={json.dumps(node.label)} fillcolor=lightgrey];"
    colour = _COLOURS.get(node.op.role, "palegreen")
    label = json.dumps(f"{node.op.type}\n{node.op.layer}")
    return f"    n{at} [label={label} fillcolor={colour}];"
