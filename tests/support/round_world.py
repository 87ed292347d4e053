"""A pserver's decisions without a pserver: scripted trainers, a clock moved by hand, every order.

`World` executes the instructions of one `PserverState` and records what happened. `all_orders`
replays every interleaving of some scripts in which each step was possible when its turn came.
"""

from __future__ import annotations

from collections.abc import Iterator

from psrt.core.errors import PsrtError
from psrt.core.specs import Sync
from psrt.pserver.decisions.calls import Close, Fail, Instruction, SendReply, WaitingCall
from psrt.pserver.decisions.job_identity import JobIdentity
from psrt.pserver.decisions.pserver_state import PserverState
from tests.support.clock import ManualClock

WAIT_TIMEOUT_S = 10.0


class World:
    """One `PserverState`, its trainers, and the outcomes of every call.

    Steps: `push` (the next round, once the last was answered) · `retry` (the last push on a new
    call) · `complete` · `restart` (a new process joins) · `apply` (the closing round was
    applied) · `expire` (the round's wait is over). A step that cannot happen now is refused
    by `can`.
    """

    def __init__(self, trainers: int = 2, policy: str = "wait") -> None:
        self.clock = ManualClock()
        self.state = PserverState(WAIT_TIMEOUT_S)
        self.job = JobIdentity("job", "plan", trainers, Sync(policy))
        self.incarnation = {trainer: 100 + trainer for trainer in range(trainers)}
        self.sequence = dict.fromkeys(range(trainers), 0)
        self.closing: Close | None = None
        self.applied: list[tuple[int, tuple[int, ...]]] = []
        self.outcomes: dict[WaitingCall, list[str]] = {}
        self.last_call: dict[int, WaitingCall] = {}
        self.refused: list[str] = []
        for trainer in range(trainers):
            self.state.hello(trainer, self.incarnation[trainer], self.job, 0.0)

    # --- steps -------------------------------------------------------------------------------

    def can(self, step: str, trainer: int) -> bool:
        call = self.last_call.get(trainer)
        match step:
            case "push" | "complete":
                return call is None or bool(self.outcomes[call])
            case "retry":
                return call is not None
            case "apply":
                return self.closing is not None
            case _:
                return True

    def do(self, step: str, trainer: int = 0) -> None:
        try:
            self._execute(getattr(self, f"_{step}")(trainer))
        except PsrtError as error:
            self.refused.append(error.code.name)
        if self.state.rounds is not None:
            self.state.rounds.check()

    def _push(self, trainer: int) -> list[Instruction]:
        self.sequence[trainer] += 1
        return self._call(trainer)

    def _retry(self, trainer: int) -> list[Instruction]:
        return self._call(trainer)

    def _call(self, trainer: int) -> list[Instruction]:
        deadline_s = self.clock.now() + 1000.0
        call = WaitingCall(trainer, self.incarnation[trainer], self.sequence[trainer], deadline_s)
        self.last_call[trainer] = call
        self.outcomes[call] = []
        try:
            return self.state.exchange(call, self.clock.now())
        except PsrtError as error:
            self.outcomes[call].append(error.code.name)
            raise

    def _complete(self, trainer: int) -> list[Instruction]:
        return self.state.complete(trainer, self.incarnation[trainer], self.clock.now())

    def _restart(self, trainer: int) -> list[Instruction]:
        self.incarnation[trainer] += 1000
        self.sequence[trainer] = 0
        self.last_call.pop(trainer, None)
        process = trainer, self.incarnation[trainer]
        self.state.hello(*process, self.job, self.clock.now())
        return self.state.attend(*process, self.clock.now())

    def _apply(self, trainer: int) -> list[Instruction]:
        assert self.closing is not None
        pushers = tuple(call.trainer for call in self.closing.pushes)
        self.applied.append((self.closing.round, pushers))
        self.closing = None
        return self.state.closed()

    def _expire(self, trainer: int) -> list[Instruction]:
        self.clock.advance(WAIT_TIMEOUT_S)
        return self.state.expire(self.clock.now())

    def _execute(self, instructions: list[Instruction]) -> None:
        for instruction in instructions:
            match instruction:
                case Close():
                    assert self.closing is None, "a round closed while another was being applied"
                    self.closing = instruction
                case SendReply(call, _):
                    self.outcomes[call].append("answered")
                case Fail(call, error):
                    self.outcomes[call].append(error.code.name)

    # --- questions ---------------------------------------------------------------------------

    def outcomes_of(self, trainer: int) -> list[str]:
        """The outcome of each call of `trainer`, in the order of the calls."""
        return [
            outcome
            for call, outcomes in self.outcomes.items()
            if call.trainer == trainer
            for outcome in outcomes
        ]

    def unanswered(self) -> list[WaitingCall]:
        return [call for call, outcomes in self.outcomes.items() if not outcomes]

    def answered_twice(self) -> list[WaitingCall]:
        return [call for call, outcomes in self.outcomes.items() if len(outcomes) > 1]

    def applied_twice(self) -> list[tuple[int, int]]:
        pairs = [(round, trainer) for round, pushers in self.applied for trainer in pushers]
        return [pair for pair in set(pairs) if pairs.count(pair) > 1]


def all_orders(scripts: dict[int, list[str]], policy: str = "wait") -> Iterator[World]:
    """The worlds at the end of every possible interleaving of `scripts` (trainer → steps).

    `apply` happens at every moment it can, without standing in a script; orders in which a script
    cannot be finished are given too, with its rest undone.
    """
    yield from _extend([], scripts, policy)


def _extend(
    path: list[tuple[str, int]], scripts: dict[int, list[str]], policy: str
) -> Iterator[World]:
    world = _replay(path, len([key for key in scripts if key >= 0]), policy)
    nexts = list(_possible(world, path, scripts))
    if not nexts:
        yield world
    for step in nexts:
        yield from _extend([*path, step], scripts, policy)


def _possible(
    world: World, path: list[tuple[str, int]], scripts: dict[int, list[str]]
) -> Iterator[tuple[str, int]]:
    if world.can("apply", 0):
        yield "apply", 0
    for trainer, steps in scripts.items():
        done = sum(1 for step, other in path if other == trainer and step != "apply")
        if done < len(steps) and world.can(steps[done], trainer):
            yield steps[done], trainer


def _replay(path: list[tuple[str, int]], trainers: int, policy: str) -> World:
    world = World(trainers, policy)
    for step, trainer in path:
        world.do(step, trainer)
    return world
