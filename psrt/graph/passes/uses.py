"""Writer and readers of each var of a program, and rewriting ops by them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from psrt.graph.program import Op, Program, Var


class Uses:
    """Index of one program, which must not change meanwhile."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._writer: dict[str, Op] = {}
        self._readers: dict[str, list[Op]] = {}
        for op in program.ops:
            self._writer.update(dict.fromkeys(op.writes(), op))
            for name in dict.fromkeys(op.reads()):
                self._readers.setdefault(name, []).append(op)

    def writer(self, name: str) -> Op | None:
        return self._writer.get(name)

    def readers(self, name: str) -> Sequence[Op]:
        return self._readers.get(name, ())

    def read_only_by(self, name: str, allowed: Iterable[Op | None]) -> bool:
        """Return whether only ops in `allowed` read a var."""
        known = {id(op) for op in allowed}
        return all(id(op) in known for op in self.readers(name))


def rewritten(
    program: Program, replaced: Mapping[int, Op | None], new_vars: Iterable[Var] = ()
) -> Program:
    """`program` with ops replaced, or dropped for None; `replaced` is by id of the op.

    Vars that no op touches any longer are dropped, too, unless they are data or parameters.
    """
    ops = [new for op in program.ops if (new := replaced.get(id(op), op)) is not None]
    touched = {name for op in ops for name in (*op.reads(), *op.writes())}
    vars = {**program.vars, **{var.name: var for var in new_vars}}
    kept = {n: v for n, v in vars.items() if n in touched or v.kind != "temp"}
    return Program(program.seed, kept, ops, dict(program.parameters))
