"""Dead code elimination: removes ops whose results no op needs.

Needed are ops that compute a var to keep, that train, and that change state. Results do not change.
Data vars stay, needed or not, since batches hold them.
"""

from __future__ import annotations

from collections.abc import Collection

from psrt.graph.passes.uses import rewritten
from psrt.graph.program import Op, Program


def drop_dead_code(program: Program, keep: Collection[str] = ()) -> Program:
    """Return the program without dead ops."""
    needed = set(keep) | set(program.gradients().values())
    dead: dict[int, Op | None] = {}
    for op in reversed(program.ops):
        changes = any(program.vars[name].kind != "temp" for name in op.writes())
        if changes or not needed.isdisjoint(op.writes()):
            needed.update(op.reads())
        else:
            dead[id(op)] = None
    return rewritten(program, dead)
