"""Dead code: ops that nothing needs are not run.

Needed is what computes a var to keep, what trains, and what changes state. Results do not change:
what goes away is read by nobody. Data vars stay, needed or not, since batches hold them.
"""

from __future__ import annotations

from collections.abc import Collection

from psrt.graph.passes.uses import rewritten
from psrt.graph.program import Op, Program


def drop_dead_code(program: Program, keep: Collection[str] = ()) -> Program:
    """Without the ops that only compute what nobody reads."""
    needed = set(keep) | set(program.gradients().values())
    dead: dict[int, Op | None] = {}
    for op in reversed(program.ops):
        changes = any(program.vars[name].kind != "temp" for name in op.writes())
        if changes or not needed.isdisjoint(op.writes()):
            needed.update(op.reads())
        else:
            dead[id(op)] = None
    return rewritten(program, dead)
