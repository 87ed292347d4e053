"""Last-use memory reuse: vars of a step that may share memory.

    op            reads → writes      buffers in use
    fc_0          x     → a           a: 0
    fc_1          a     → b           a: 0, b: 1        (an op never writes where it reads)
    mean          b     → loss        b: 1, loss: 0     (a is dead)

A var whose op may pass on the memory of an input (`sharing` op types) is part of that input: the
two form a group, whose life ends with the last reader of any of them and whose first var owns the
memory. Vars that outlive the step stay apart: data, parameters and their gradients, state, and vars
to `keep`. Pure; results do not change, since nothing is overwritten that is read later.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from psrt.graph.derived import derived_ops
from psrt.graph.ops import ROWS
from psrt.graph.program import ROLES, Op, Program, Var

NOTHING: Mapping[str, Collection[str]] = {}
MIN_ELEMENTS = 1024
"""Vars of a fixed size below this are not worth a buffer."""


@dataclass(frozen=True)
class MemoryPlan:
    """Buffers of vars.

    `owners` maps the vars that write into shared memory to its number, `places` all vars whose
    values may be there. `spent` are gradients that only one op reads: it may overwrite them.
    """

    owners: dict[str, int] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    spent: frozenset[str] = frozenset()


def plan_memory(
    program: Program,
    sharing: Collection[str],
    keep: Collection[str] = (),
    skip_grads: bool = False,
    shapes_only: Mapping[str, Collection[str]] = NOTHING,
    late: Collection[str] = (),
) -> MemoryPlan:
    """Return the plan; `skip_grads` excludes all gradients, as Fluid's memory_optimize can.

    `shapes_only` names, by op type, slots whose values are not read: these keep no var alive. Ops
    of `late` types may run any time later, so their inputs live on: a faster thread would otherwise
    wait for them to free its memory.
    """
    uses = [_Use.of(op, shapes_only) for op in _in_running_order(program)]
    groups = _groups(uses, sharing)
    fixed = _fixed(program, keep, skip_grads)
    lives = [life for life in _lives(uses, groups, late) if fixed.isdisjoint(life.members)]
    buffers = _Buffers()
    plan = MemoryPlan(spent=_spent(program, uses, sharing, fixed))
    for life in sorted(lives, key=lambda life: life.first):
        var = program.vars[life.owner]
        if not _is_small(var):
            number = buffers.take(life, _size(var), var.ragged)
            plan.owners[life.owner] = number
            plan.places.update(dict.fromkeys(life.members, number))
    return plan


def _in_running_order(program: Program) -> list[Op]:
    derived = {id(op) for op in derived_ops(program)}
    ops = [op for op in program.ops if id(op) not in derived]
    return sorted(ops, key=lambda op: ROLES.index(op.role))


def _fixed(program: Program, keep: Collection[str], skip_grads: bool) -> set[str]:
    """Vars whose memory is not reused."""
    derived = {name for op in derived_ops(program) for name in op.writes()}

    def stays(var: Var) -> bool:
        gradient = bool(var.gradient_of) and (skip_grads or var.gradient_of in program.parameters)
        return var.kind != "temp" or gradient

    return {var.name for var in program.vars.values() if stays(var)} | derived | set(keep)


def _spent(
    program: Program, uses: Sequence[_Use], sharing: Collection[str], fixed: Collection[str]
) -> frozenset[str]:
    """Gradients in memory of their own that no second op reads."""
    readers = Counter(name for use in uses for name in use.reads)
    writers = Counter(name for use in uses for name in use.writes)
    shared = {n for use in uses if use.type in sharing for n in (*use.reads, *use.writes)}
    return frozenset(
        name
        for name, count in readers.items()
        if count == 1
        and writers[name] == 1
        and program.vars[name].gradient_of
        and name not in shared
        and name not in fixed
    )


# --- lives ----------------------------------------------------------------------------------------


@dataclass
class _Life:
    """A group of vars from the op that writes its owner to the last one that reads any of them."""

    owner: str
    first: int
    last: int
    members: set[str]


@dataclass(frozen=True)
class _Use:
    """One op: the vars whose values it reads, and those it writes."""

    type: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]

    @classmethod
    def of(cls, op: Op, shapes_only: Mapping[str, Collection[str]]) -> _Use:
        unread = shapes_only.get(op.type, ())
        reads = (n for slot, names in op.inputs.items() if slot not in unread for n in names if n)
        return cls(op.type, tuple(dict.fromkeys(reads)), tuple(op.writes()))


def _groups(uses: Sequence[_Use], sharing: Collection[str]) -> dict[str, str]:
    """Owner of the memory a var may be in, where that is another var."""
    owner: dict[str, str] = {}

    def find(name: str) -> str:
        while name in owner:
            name = owner[name]
        return name

    for use in uses:
        if use.type in sharing:
            first, *others = dict.fromkeys(find(name) for name in use.reads)
            for name in (*others, *(find(name) for name in use.writes)):
                if name != first:
                    owner[name] = first
    return {name: find(name) for name in owner}


def _lives(uses: Sequence[_Use], groups: dict[str, str], late: Collection[str]) -> Iterator[_Life]:
    lives: dict[str, _Life] = {}
    for at, use in enumerate(uses):
        for name in (*use.reads, *use.writes):
            owner = groups.get(name, name)
            life = lives.setdefault(owner, _Life(owner, at, at, {owner}))
            life.last = max(life.last, len(uses) if use.type in late else at)
            life.members.add(name)
    return iter(lives.values())


# --- buffers --------------------------------------------------------------------------------------


class _Buffers:
    """Buffers by number: their sizes, and the op after which each is free."""

    def __init__(self) -> None:
        self._sizes: list[int] = []
        self._free_after: list[int] = []
        self._ragged: list[bool] = []

    def take(self, life: _Life, size: int, ragged: bool) -> int:
        """Return the smallest free buffer that fits, else the largest free, else a new one."""
        free = [
            number
            for number, after in enumerate(self._free_after)
            if after < life.first and self._ragged[number] == ragged
        ]
        large = [number for number in free if self._sizes[number] >= size]
        if large:
            number = min(large, key=self._sizes.__getitem__)
        elif free:
            number = max(free, key=self._sizes.__getitem__)
        else:
            number = self._new(ragged)
        self._sizes[number] = max(self._sizes[number], size)
        self._free_after[number] = life.last
        return number

    def _new(self, ragged: bool) -> int:
        self._sizes.append(0)
        self._free_after.append(-1)
        self._ragged.append(ragged)
        return len(self._sizes) - 1


def _size(var: Var) -> int:
    """Elements for each row of the batch, or in total."""
    return math.prod(size for size in var.shape if size > 0)


def _is_small(var: Var) -> bool:
    return ROWS not in var.shape and _size(var) < MIN_ELEMENTS
