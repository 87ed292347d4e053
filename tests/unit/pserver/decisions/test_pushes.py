"""Asynchronous pushes in every order of first calls, repeats and applications."""

from __future__ import annotations

import itertools
import math

from psrt.core.errors import ErrorCode, PsrtError, TableError
from psrt.pserver.decisions.calls import Apply, Fail, SendReply, WaitingCall
from psrt.pserver.decisions.lineages import Lineages
from psrt.pserver.decisions.pushes import MOST_FAILED, MOST_STEPS, Pushes

Event = tuple[str, int]  # arrive or apply, sequence


class World:
    """One trainer's process that sends each push twice; a push is applied at the event `apply`."""

    def __init__(self) -> None:
        self.pushes = Pushes()
        self.to_apply: dict[int, WaitingCall] = {}
        self.applied: list[tuple[int, int]] = []  # sequence, step
        self.answered: list[WaitingCall] = []
        self.calls: list[WaitingCall] = []

    def can(self, event: Event) -> bool:
        return event[0] == "arrive" or event[1] in self.to_apply

    def do(self, event: Event) -> None:
        kind, sequence = event
        if kind == "arrive":
            self.calls.append(WaitingCall(0, 7, sequence, math.inf))
            instructions = self.pushes.arrive(self.calls[-1], 10, Lineages())
        else:
            instructions = self.pushes.applied(self.to_apply.pop(sequence))
        for instruction in instructions:
            match instruction:
                case Apply(call, step):
                    self.to_apply[call.sequence] = call
                    self.applied.append((call.sequence, step))
                case SendReply(call, _):
                    assert call.sequence not in self.to_apply, "answered before it was applied"
                    self.answered.append(call)
                case Fail(_, error):
                    raise error


def run(order: tuple[Event, ...]) -> World | None:
    """The world after `order`; None if it applies a push without an `Apply`."""
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


def failed(pushes: Pushes, sequence: int, error: PsrtError) -> None:
    """A push that could not be applied."""
    call = WaitingCall(0, 7, sequence, math.inf)
    assert pushes.arrive(call, 1, Lineages()) == [Apply(call, pushes.step - 1)]
    assert pushes.applied(call, error) == [Fail(call, error)]


def test_a_repeat_of_a_push_that_failed_gets_the_error_and_not_an_answer() -> None:
    pushes, error = Pushes(), TableError("no room.", code=ErrorCode.TABLE_FULL, hint="Make some.")
    failed(pushes, 1, error)

    for _ in range(2):
        again = WaitingCall(0, 7, 1, math.inf)
        (instruction,) = pushes.arrive(again, 1, Lineages())

        assert isinstance(instruction, Fail)
        assert instruction.call is again
        repeated = instruction.error
        assert (str(repeated), repeated.code) == (str(error), error.code)
        assert repeated is not error  # whose traceback keeps frames and their arrays
    assert pushes.step == 1


def test_as_many_failed_pushes_are_remembered_as_may_be() -> None:
    pushes = Pushes()
    for sequence in range(1, MOST_FAILED + 2):
        failed(pushes, sequence, TableError(f"{sequence}"))

    answers = [
        pushes.arrive(WaitingCall(0, 7, sequence, math.inf), 1, Lineages())[0]
        for sequence in (1, 2)
    ]

    assert [type(instruction) for instruction in answers] == [SendReply, Fail]


def test_steps_are_counted_up_to_the_largest_number_of_a_reply() -> None:
    pushes = Pushes()
    pushes.step = (1 << 64) - 2

    pushes.arrive(WaitingCall(0, 7, 1, math.inf), MOST_STEPS, Lineages())

    assert pushes.step == (1 << 64) - 1
