"""Fusing lookups: `embedding` + `sequence_pool` for each slot and a `concat` become one op.

    e_i = embedding(ids_i, table) · p_i = sequence_pool(e_i) · concat(…, p_0 … p_k, …)
    →  s = slot_embeddings(ids_0 … ids_k, table) · concat(…, s, …)

for k neighbours in the concat that look up one table with one pool, if no other op reads e_i or
p_i, or looks up that table. Rows are no longer gathered in between. Within rounding: gradients of a
row that several slots look up are added in another order.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from psrt.graph.ops import ROWS
from psrt.graph.passes.uses import Uses, rewritten
from psrt.graph.program import Op, Program, Var, gradient_name

POOLS = ("sum", "average", "sqrt")


@dataclass(frozen=True)
class _Slot:
    """One pooled lookup; its gradient ops are None where the table is not trained."""

    lookup: Op
    pool: Op
    pool_grad: Op | None
    lookup_grad: Op | None

    @property
    def kind(self) -> object:
        """Key of slots that can become one op."""
        attrs = self.lookup.attrs["padding_id"], self.pool.attrs["pool"]
        return (*self.lookup.inputs["table"], *attrs, self.lookup_grad is None)

    @property
    def pooled(self) -> str:
        return self.pool.outputs["out"][0]


def fuse_embeddings(program: Program, keep: Collection[str] = ()) -> Program:
    """Fuse all groups of two slots or more."""
    uses = Uses(program)
    replaced: dict[int, Op | None] = {}
    made: list[Var] = []
    for concat in program.ops:
        if concat.type == "concat" and concat.attrs["axis"] == 1:
            for group in _groups(uses, concat, keep):
                joined = replaced.get(id(concat)) or concat
                grad = _concat_grad(uses, concat)
                joined_grad = replaced.get(id(grad)) or grad
                replaced |= _fused(group, joined, joined_grad, concat, grad)
                made += _vars(program, group)
    return rewritten(program, replaced, made)


# --- finding --------------------------------------------------------------------------------------


def _groups(uses: Uses, concat: Op, keep: Collection[str]) -> Iterator[list[_Slot]]:
    slots = [_slot(uses, name, concat, keep) for name in concat.inputs["x"]]
    for kind, group in itertools.groupby(slots, lambda slot: slot and slot.kind):
        found = [slot for slot in group if slot is not None]
        if kind is not None and len(found) > 1 and _has_table_alone(uses, found):
            yield found


def _slot(uses: Uses, pooled: str, concat: Op, keep: Collection[str]) -> _Slot | None:
    pool = uses.writer(pooled)
    if pool is None or pool.type != "sequence_pool" or pool.attrs["pool"] not in POOLS:
        return None
    (looked_up,) = pool.inputs["x"]
    lookup = uses.writer(looked_up)
    if lookup is None or lookup.type != "embedding" or not {pooled, looked_up}.isdisjoint(keep):
        return None
    pool_grad = next((o for o in uses.readers(looked_up) if o.type == "sequence_pool_grad"), None)
    lookup_grad = None
    if pool_grad is not None:
        (back,) = pool_grad.outputs["x@GRAD"]
        lookup_grad = next((op for op in uses.readers(back) if op.type == "embedding_grad"), None)
    alone = uses.read_only_by(pooled, (concat, _concat_grad(uses, concat), pool_grad))
    alone = alone and uses.read_only_by(looked_up, (pool, pool_grad))
    return _Slot(lookup, pool, pool_grad, lookup_grad) if alone else None


def _concat_grad(uses: Uses, concat: Op) -> Op | None:
    readers = uses.readers(concat.inputs["x"][0])
    same = concat.inputs["x"]
    grads = (op for op in readers if op.type == "concat_grad" and op.layer == concat.layer)
    return next((op for op in grads if op.inputs["x"] == same), None)


def _has_table_alone(uses: Uses, slots: Sequence[_Slot]) -> bool:
    """Return whether only these slots look the table up: gradients have one place then."""
    (table,) = slots[0].lookup.inputs["table"]
    known = [slot.lookup for slot in slots] + [slot.lookup_grad for slot in slots]
    others = [op for op in uses.readers(table) if op.role in ("forward", "backward")]
    return all(any(op is each for each in known) for op in others)


# --- replacing ------------------------------------------------------------------------------------


def _joined_name(slots: Sequence[_Slot]) -> str:
    return f"{slots[0].pooled}@SLOTS"


def _vars(program: Program, slots: Sequence[_Slot]) -> list[Var]:
    first = program.vars[slots[0].pooled]
    width = first.shape[1] * len(slots)
    joined = dataclasses.replace(first, name=_joined_name(slots), shape=(ROWS, width))
    gradient = dataclasses.replace(joined, name=gradient_name(joined.name), gradient_of=joined.name)
    return [joined] if slots[0].lookup_grad is None else [joined, gradient]


def _fused(
    slots: Sequence[_Slot], joined: Op, joined_grad: Op | None, concat: Op, concat_grad: Op | None
) -> dict[int, Op | None]:
    """`joined` and `joined_grad` are the current forms of `concat` and its gradient."""
    name, first = _joined_name(slots), slots[0]
    pooled = tuple(slot.pooled for slot in slots)
    every = [op for slot in slots for op in (slot.lookup, slot.pool)]
    grads = [op for slot in slots for op in (slot.pool_grad, slot.lookup_grad) if op is not None]
    replaced: dict[int, Op | None] = {id(op): None for op in (*every, *grads)}
    table, ids = first.lookup.inputs["table"], _ids(slots)
    attrs = {"pool": first.pool.attrs["pool"], "padding_id": first.lookup.attrs["padding_id"]}
    replaced[id(slots[-1].pool)] = dataclasses.replace(
        slots[-1].pool,
        type="slot_embeddings",
        inputs={"ids": ids, "table": table},
        outputs={"out": (name,)},
        attrs=attrs,
    )
    inputs = {**joined.inputs, "x": _spliced(joined.inputs["x"], pooled, name)}
    replaced[id(concat)] = dataclasses.replace(joined, inputs=inputs)
    if concat_grad is None or joined_grad is None:
        return replaced
    back = tuple(gradient_name(each) for each in pooled)
    trained = first.lookup_grad is not None
    returned = gradient_name(name) if trained else ""
    outputs = _spliced(
        joined_grad.outputs["x@GRAD"], back if trained else ("",) * len(back), returned
    )
    seen = _spliced(joined_grad.inputs["x"], pooled, name)
    replaced[id(concat_grad)] = dataclasses.replace(
        joined_grad, inputs={**joined_grad.inputs, "x": seen}, outputs={"x@GRAD": outputs}
    )
    if trained:
        last = _last_gradient(slots)
        replaced[id(last)] = dataclasses.replace(
            last,
            type="slot_embeddings_grad",
            inputs={"ids": ids, "table": table, "out@GRAD": (returned,)},
            attrs=attrs,
        )
    return replaced


def _ids(slots: Sequence[_Slot]) -> tuple[str, ...]:
    return tuple(slot.lookup.inputs["ids"][0] for slot in slots)


def _last_gradient(slots: Sequence[_Slot]) -> Op:
    """The lookup gradient that no other one continues: it writes all of the table's."""
    grads = [slot.lookup_grad for slot in slots if slot.lookup_grad is not None]
    continued = {name for op in grads for name in op.inputs.get("before", ())}
    return next(op for op in grads if op.outputs["table@GRAD"][0] not in continued)


def _spliced(names: tuple[str, ...], old: tuple[str, ...], new: str) -> tuple[str, ...]:
    """`names` with the run `old` replaced by `new`."""
    starts = range(len(names) - len(old) + 1)
    at = next(i for i in starts if names[i : i + len(old)] == old)
    return (*names[:at], new, *names[at + len(old) :])
