"""Reverse-mode differentiation of a program by the table of rules.

`append_backward` appends to the program and changes no existing op. Vars that no trainable
parameter needs get no gradient, data among them. Gradients of a var that is read several times are
added by a `sum` op; those of a table are added in place, lookup after lookup. A loss may be
differentiated again for other parameters: gradients that are there are read, not made again.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from psrt.core.errors import ProgramError
from psrt.graph.gradients import BEFORE, RULES, gradient_type
from psrt.graph.names import user_line
from psrt.graph.program import Op, Program, Var, gradient_name

_START = "loss_gradient"
_STARTS = (_START, "ones_like")  # a program text may come from a psrt that has no `loss_gradient`


def append_backward(
    program: Program, loss: Var, also: Sequence[str] = (), known: Sequence[str] = ()
) -> dict[str, str]:
    """Append the gradient ops of the scalar `loss`; returns gradient var by parameter name.

    Vars named in `also` get gradients, too, data among them. Of a loss that was differentiated for
    some parameters, those of others are made; their ops come before its first update. Parameters
    `known` are such ones, and returned with the others. Raises `ProgramError` for a loss that is no
    var of shape (), depends on nothing that has a gradient, or reaches a parameter that has one
    already and is not `known`.
    """
    if not isinstance(loss, Var):
        raise ProgramError(
            f"A backward pass needs a loss, but {loss!r} is no var.",
            hint="Give the scalar that layers.mean or layers.reduce_sum returns.",
        )
    if loss.shape != ():
        raise ProgramError(
            f"The loss {loss.name}, minimized at {user_line()}, has shape {loss.shape}, so it has "
            "no single gradient.",
            hint="Reduce it with layers.mean or layers.reduce_sum.",
        )
    trainable = [p.name for p in program.parameters.values() if p.trainable]
    backward = _Backward(program, loss.name, [n for n in trainable if n not in known] + [*also])
    if backward.active or not known:
        backward.run()
    made = {*known, *backward.trained}
    return {name: gradient_name(name) for name in program.parameters if name in made}


def append_gradients(program: Program, target: Var, of: Sequence[str]) -> dict[str, str]:
    """Append the gradient ops of the scalar `target` with respect to the vars `of`.

    Returns the gradient var of each that `target` depends on.
    """
    backward = _Backward(program, target.name, of)
    backward.run()
    return {name: gradient_name(name) for name in backward.trained}


def loss_gradients(program: Program) -> list[str]:
    """Return the vars that backward begins with, one for each loss."""
    begin = (op for op in program.ops if op.role == "backward" and op.type in _STARTS)
    return [name for op in begin for name in op.writes()]


def vars_that_need_gradients(program: Program, of: Iterable[str]) -> set[str]:
    """Return vars `of`, and all floats computed from them by a rule."""
    needed = set(of)
    for op in program.ops:
        rule = RULES.get(op.type)
        if rule is None:
            continue
        if any(name in needed for slot in rule.of_slots for name in op.inputs.get(slot, ())):
            written = (program.vars[name] for name in op.writes())
            needed.update(v.name for v in written if v.type.is_float and not v.stop_gradient)
    return needed


def differentiated_by(program: Program, loss: Var) -> list[str]:
    """Return the trainable parameters that have their gradient of `loss` already."""
    made = _vars_with_gradients_of(program, loss.name)
    return [p.name for p in program.parameters.values() if p.trainable and p.name in made]


def _vars_with_gradients_of(program: Program, loss: str) -> set[str]:
    """Return the vars whose gradients of `loss` the program has already."""
    reached = {gradient_name(loss)} & program.vars.keys()
    for op in program.ops if reached else ():
        if op.role == "backward" and not reached.isdisjoint(op.reads()):
            reached.update(op.writes())
    return {name for name in program.vars if gradient_name(name) in reached}


class _Backward:
    """State of one differentiation.

    `active` holds the ops between parameters and loss; `missing[var]` counts the gradients of `var`
    that are still to come, `parts[var]` holds the gradient vars that came and are not added yet.
    Vars in `given` have their whole gradient of this loss already.
    """

    def __init__(self, program: Program, loss: str, of: Sequence[str]) -> None:
        self.program = program
        self.loss = loss
        self.given = _vars_with_gradients_of(program, loss)
        self.needed = vars_that_need_gradients(program, of) - self.given
        self.roots = list(of)
        self.missing: Counter[str] = Counter() if self.given else Counter({loss: 1})
        self.made: Counter[str] = Counter()
        self.parts: defaultdict[str, list[str]] = defaultdict(list)
        self.parts.update({name: [gradient_name(name)] for name in self.given})
        self.ops: list[Op] = []
        self._check_is_first([name for name in of if name in self.given])
        self.active = self._find_active()
        self.trained = [n for n in self.roots if n in self.needed and n in self.missing]
        self._check_is_first([n for n in self.trained if gradient_name(n) in program.vars])

    def _find_active(self) -> list[Op]:
        reached, active = {self.loss, *self.given}, []
        for op in reversed(self.program.ops):
            if op.type not in RULES or reached.isdisjoint(op.writes()):
                continue
            targets = [name for names in self._targets(op).values() for name in names if name]
            if targets:
                active.append(op)
                reached.update(targets)
                self.missing.update(targets)
        return active

    def _check_is_first(self, taken: Sequence[str]) -> None:
        """Raise if a root has a gradient, of this loss or of another one."""
        if taken and self.given:
            raise ProgramError(
                f"Parameter {taken[0]} has its gradient already, from an earlier backward of the "
                f"loss {self.loss}, so psrt did not differentiate the loss again.",
                hint="Call minimize once for each loss, or let each optimizer train parameters of "
                "its own: minimize(loss, parameter_list=[...]).",
            )
        if taken:
            raise ProgramError(
                f"The loss {self.loss} depends on parameter {taken[0]}, which has its gradient "
                "from another loss already, so psrt did not differentiate it.",
                hint="Call minimize once, for the sum of the losses, or let each of them train "
                "parameters of its own.",
            )

    def _targets(self, op: Op) -> dict[str, tuple[str, ...]]:
        """Input vars of `op` by slot that need a gradient; "" for the others."""
        return {
            slot: tuple(name if name in self.needed else "" for name in op.inputs[slot])
            for slot in RULES[op.type].of_slots
            if slot in op.inputs
        }

    def run(self) -> None:
        """Differentiate `active`, which runs backwards: readers of an op's outputs come first."""
        if not self.active:
            raise ProgramError(
                f"The loss {self.loss} does not depend on any trainable parameter.",
                hint="Build it from layers that own parameters, such as layers.fc.",
            )
        if not self.given:
            self._append(self.active[0], _START, {"x": (self.loss,)}, {"out": (self.loss,)})
        for op in self.active:
            self.differentiate(op)
        for name in self.roots:
            self._add_up(name, self.active[-1])
        at = self._first_update() if self.given else len(self.program.ops)
        self.program.ops[at:at] = self.ops

    def _first_update(self) -> int:
        """The place of the first update by gradients of this loss: none sees what it changes."""
        ops, begins = self.program.ops, False
        for at, op in enumerate(ops):
            begins = begins or gradient_name(self.loss) in op.writes()
            if begins and op.role == "optimize":
                return at
        return len(ops)

    def differentiate(self, op: Op) -> None:
        rule = RULES[op.type]
        for slot in op.outputs.keys() - set(rule.through_slots):
            if any(self.parts[name] for name in op.outputs[slot]):
                raise ProgramError(f"The loss depends on {slot} of {op}, which has no gradient.")
        for name in op.writes():
            self._add_up(name, op)
        known = op.inputs | op.outputs
        inputs = {slot: known[slot] for slot in rule.read_slots if slot in known}
        for slot in rule.through_slots:
            inputs[gradient_name(slot)] = tuple(
                gradient_name(name) if self.parts[name] else "" for name in op.outputs[slot]
            )
        targets = self._targets(op)
        if rule.accumulates and self.parts[table := targets[rule.of_slots[0]][0]]:
            # The op adds to the last part of the table's gradient instead of making its own.
            inputs[BEFORE] = (self.parts[table].pop(),)
        outputs = {gradient_name(slot): names for slot, names in targets.items()}
        self._append(op, gradient_type(op.type), inputs, outputs, op.attrs)

    def _add_up(self, name: str, op: Op) -> None:
        """Replace several parts of the gradient of `name` by their sum."""
        if len(self.parts[name]) > 1:
            parts = tuple(self.parts.pop(name))
            self.missing[name] = 1
            self._append(op, "sum", {"x": parts}, {"out": (name,)})

    def _append(
        self,
        origin: Op,
        type: str,
        inputs: dict[str, tuple[str, ...]],
        gradients_of: dict[str, tuple[str, ...]],
        attrs: dict[str, Any] | None = None,
    ) -> None:
        """Append an op whose outputs are gradients of the named vars."""
        outputs = {
            slot: tuple(self._new_part(name) if name else "" for name in names)
            for slot, names in gradients_of.items()
        }
        op = Op(type, inputs, outputs, dict(attrs or {}), "backward", origin.layer, origin.origin)
        self.ops.append(op)

    def _new_part(self, name: str) -> str:
        """Make one more gradient of `name`; the only one, or a sum's result, takes its name."""
        self.missing[name] -= 1
        part = gradient_name(name)
        if self.missing[name] or self.parts[name]:
            part += f"@{self.made[name]}"
            self.made[name] += 1
        var = self.program.vars[name]
        self.program.vars[part] = dataclasses.replace(var, name=part, kind="temp", gradient_of=name)
        self.parts[name].append(part)
        return part
