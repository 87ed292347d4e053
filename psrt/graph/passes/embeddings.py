"""Fusing lookups: `embedding` and what makes a row of an example, for each slot, and a `concat`
become one op.

    e_i = embedding(ids_i, table) · p_i = sequence_pool(e_i) · concat(…, p_0 … p_k, …)
    →  s = slot_embeddings(ids_0 … ids_k, table) · concat(…, s, …)

    e_i = embedding(ids_i, table) · p_i = sequence_rows(e_i) · concat(…, p_0 … p_k, …)
    →  s, e_i, p_i = slot_rows(ids_0 … ids_k, table) · concat(…, s, …)

for k neighbours in the concat that look up one table in one way, if no other op reads e_i or p_i,
or looks up that table. Rows are no longer gathered in between.

`fuse_embeddings` is within rounding: gradients of a row that several slots look up are added in
another order. `fuse_slot_rows` is bit-identical, and loses no var: Fluid's models for click rates
have a slot for each feature, lists of one id, and four ops a slot cost more than the numbers in
them (26 slots of 256 rows of 10 beside 400-400-400: 6 to 11 % of a step's CPU time).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from psrt.graph.gradients import BEFORE
from psrt.graph.ops import ROWS
from psrt.graph.passes.uses import Uses, rewritten
from psrt.graph.program import Op, Program, Var, gradient_name

POOLS = ("sum", "average", "sqrt")


@dataclass(frozen=True)
class _Slot:
    """One lookup and the op `pool`, which makes a row of each example of it; the gradient ops are
    None where the table is not trained."""

    lookup: Op
    pool: Op
    pool_grad: Op | None
    lookup_grad: Op | None

    @property
    def kind(self) -> object:
        """Key of slots that can become one op."""
        attrs = self.lookup.attrs["padding_id"], self.pool.attrs.get("pool")
        return (*self.lookup.inputs["table"], *attrs, self.lookup_grad is None)

    @property
    def looked_up(self) -> str:
        return self.lookup.outputs["out"][0]

    @property
    def pooled(self) -> str:
        return self.pool.outputs["out"][0]


def fuse_embeddings(program: Program, keep: Collection[str] = ()) -> Program:
    """Fuse all groups of two pooled slots or more."""
    return _fuse(program, "sequence_pool", keep)


def fuse_slot_rows(program: Program, keep: Collection[str] = ()) -> Program:
    """Fuse all groups of two slots or more of one id an example; vars to keep are computed."""
    return _fuse(program, "sequence_rows", ())


def _fuse(program: Program, way: str, keep: Collection[str]) -> Program:
    uses = Uses(program)
    replaced: dict[int, Op | None] = {}
    made: list[Var] = []
    for concat in program.ops:
        if concat.type == "concat" and concat.attrs["axis"] == 1:
            for group in _groups(uses, concat, way, keep):
                joined = replaced.get(id(concat)) or concat
                grad = _concat_grad(uses, concat)
                joined_grad = replaced.get(id(grad)) or grad
                replaced |= _fused(group, joined, joined_grad, concat, grad)
                made += _vars(program, group)
    return rewritten(program, replaced, made)


# --- finding --------------------------------------------------------------------------------------


def _groups(uses: Uses, concat: Op, way: str, keep: Collection[str]) -> Iterator[list[_Slot]]:
    slots = [_slot(uses, name, concat, way, keep) for name in concat.inputs["x"]]
    for kind, group in itertools.groupby(slots, lambda slot: slot and slot.kind):
        found = [slot for slot in group if slot is not None]
        if kind is not None and len(found) > 1 and _has_table_alone(uses, found):
            yield found


def _slot(uses: Uses, pooled: str, concat: Op, way: str, keep: Collection[str]) -> _Slot | None:
    pool = uses.writer(pooled)
    if pool is None or pool.type != way or pool.attrs.get("pool", "sum") not in POOLS:
        return None
    (looked_up,) = pool.inputs["x"]
    lookup = uses.writer(looked_up)
    if lookup is None or lookup.type != "embedding" or not {pooled, looked_up}.isdisjoint(keep):
        return None
    pool_grad = next((op for op in uses.readers(looked_up) if op.type == f"{way}_grad"), None)
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
    replaced[id(slots[-1].pool)] = _forward(slots)
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
        replaced[id(_lookup_grads(slots)[-1])] = _backward(slots)
    return replaced


def _forward(slots: Sequence[_Slot]) -> Op:
    first, last = slots[0], slots[-1]
    inputs = {"ids": _ids(slots), "table": first.lookup.inputs["table"]}
    padding = first.lookup.attrs["padding_id"]
    made: dict[str, tuple[str, ...]] = {"out": (_joined_name(slots),)}
    if last.pool.type == "sequence_pool":
        attrs = {"pool": first.pool.attrs["pool"], "padding_id": padding}
        return dataclasses.replace(
            last.pool, type="slot_embeddings", inputs=inputs, outputs=made, attrs=attrs
        )
    made["lists"] = tuple(slot.looked_up for slot in slots)
    made["rows"] = tuple(slot.pooled for slot in slots)
    return dataclasses.replace(
        last.pool, type="slot_rows", inputs=inputs, outputs=made, attrs={"padding_id": padding}
    )


def _backward(slots: Sequence[_Slot]) -> Op:
    forward, grads = _forward(slots), _lookup_grads(slots)
    returned = gradient_name(_joined_name(slots))
    made, attrs = dict(grads[-1].outputs), dict(forward.attrs)
    for slot in ("lists", "rows"):
        if slot in forward.outputs:
            made[f"{slot}@GRAD"] = tuple(gradient_name(name) for name in forward.outputs[slot])
            attrs["order"] = tuple(_place(slots, grad) for grad in grads)
    return dataclasses.replace(
        grads[-1],
        type=f"{forward.type}_grad",
        inputs={**forward.inputs, "out@GRAD": (returned,)},
        outputs=made,
        attrs=attrs,
    )


def _lookup_grads(slots: Sequence[_Slot]) -> list[Op]:
    """The gradients of lookups, each of which continues the one before it: the last one writes all
    of the table's."""
    grads = [slot.lookup_grad for slot in slots if slot.lookup_grad is not None]
    after = {grad.inputs.get(BEFORE, ("",))[0]: grad for grad in grads}
    chain = [next(grad for grad in grads if BEFORE not in grad.inputs)]
    while len(chain) < len(grads):
        chain.append(after[chain[-1].outputs["table@GRAD"][0]])
    return chain


def _place(slots: Sequence[_Slot], grad: Op) -> int:
    """The number of the slot with this gradient."""
    return next(number for number, slot in enumerate(slots) if slot.lookup_grad is grad)


def _ids(slots: Sequence[_Slot]) -> tuple[str, ...]:
    return tuple(slot.lookup.inputs["ids"][0] for slot in slots)


def _spliced(names: tuple[str, ...], old: tuple[str, ...], new: str) -> tuple[str, ...]:
    """`names` with the run `old` replaced by `new`."""
    starts = range(len(names) - len(old) + 1)
    at = next(i for i in starts if names[i : i + len(old)] == old)
    return (*names[:at], new, *names[at + len(old) :])
