"""Asynchronous pushes in every order of first calls, repeats and applications."""

from __future__ import annotations

import itertools
import math

from psrt.pserver.calls import Answer, Apply, Call, Fail
from psrt.pserver.pushes import Pushes

Event = tuple[str, int]  # arrive or apply, sequence


class World:
    """One trainer's process that sends each push twice; the shell applies when it is told to."""

    def __init__(self) -> None:
        self.pushes = Pushes()
        self.to_apply: dict[int, Call] = {}
        self.applied: list[tuple[int, int]] = []  # sequence, step
        self.answered: list[Call] = []
        self.calls: list[Call] = []

    def can(self, event: Event) -> bool:
        return event[0] == "arrive" or event[1] in self.to_apply

    def do(self, event: Event) -> None:
        what, sequence = event
        if what == "arrive":
            self.calls.append(Call(0, 7, sequence, math.inf))
            instructions = self.pushes.arrive(self.calls[-1], steps=10)
        else:
            instructions = self.pushes.applied(self.to_apply.pop(sequence))
        for instruction in instructions:
            match instruction:
                case Apply(call, step):
                    self.to_apply[call.sequence] = call
                    self.applied.append((call.sequence, step))
                case Answer(call, _):
                    assert call.sequence not in self.to_apply, "answered before it was applied"
                    self.answered.append(call)
                case Fail(_, error):
                    raise error


def run(order: tuple[Event, ...]) -> World | None:
    """None if the shell would have to apply what it was not told to."""
    world = World()
    for event in order:
        if not world.can(event):
            return None
        world.do(event)
    return world


def test_in_every_order_each_push_is_applied_once_and_every_call_answered_after_that() -> None:
    events = [*[("arrive", s) for s in (1, 1, 2, 2)], ("apply", 1), ("apply", 2)]

    ends = [run(order) for order in set(itertools.permutations(events))]
    worlds = [world for world in ends if world is not None]

    assert len(worlds) == 80  # of 180; in two of three a push is applied after its first call
    for world in worlds:
        assert sorted(sequence for sequence, _ in world.applied) == [1, 2]
        assert [step for _, step in world.applied] == [0, 10]
        assert sorted(map(id, world.answered)) == sorted(map(id, world.calls))
