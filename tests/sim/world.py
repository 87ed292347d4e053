"""Virtual time, fibers and processes, and the seeded choice of what runs next.

A `World` runs fibers (greenlets) one at a time on the thread that calls `run`. A fiber runs until
it parks: at a lock, a wait, a sleep or a link. A seeded generator chooses one of all fibers that
may run; when none may, time jumps to the next timer. Nothing else decides, so a seed fixes the
history.

Fibers belong to a `Process`. A killed process never runs again, not even its `finally` blocks; a
paused one runs on when it is resumed, late.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable
from typing import Any

import greenlet

MOST_SWITCHES = 20_000
"""Switches of fibers after which a history counts as endless."""


class Endless(AssertionError):
    """A history went on past its limit of virtual seconds or switches."""


class Process:
    """A simulated process: a name for its fibers, which die and pause together."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_dead = False
        self.is_paused = False
        self.exit: str | None = None
        self.on_death: list[Callable[[], None]] = []


class Fiber:
    """A thread of a simulated process; `result` and `error` are set once it has ended."""

    def __init__(
        self, world: World, process: Process, name: str, target: Callable[[], Any]
    ) -> None:
        self.world, self.process, self.name = world, process, name
        self.local: dict[int, dict[str, Any]] = {}
        self.done = False
        self.error: BaseException | None = None
        self.woken = False
        self.parked_at = ""
        self.turn = -1  # number of the present wait, -1 = not parked
        self.joiners: list[Fiber] = []
        self.greenlet = greenlet.greenlet(self._run, world.hub)
        self._target: Callable[[], Any] | None = (
            target  # None once it runs: it may own a connection
        )

    def _run(self) -> None:
        target, self._target = self._target, None
        assert target is not None
        try:
            target()
        except greenlet.GreenletExit:
            pass
        except BaseException as error:
            self.error = error
        self.done = True
        self.world.forget(self)
        for fiber in self.joiners:
            self.world.wake(fiber)


class World:
    """One history: `now` is virtual seconds, `trace` what happened, one line each."""

    def __init__(self, seed: int | str, start_s: float = 1000.0) -> None:
        self.now = start_s
        self.random = random.Random(f"world {seed}")
        self.draw, self._bits = self.random.random, self.random.getrandbits
        self.trace: list[str] = []
        self.hub = greenlet.getcurrent()
        self.current: Fiber | None = None
        self.switches = 0
        self._ready: list[Fiber] = []  # of processes that are not dead
        self._paused = 0  # number of paused processes
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._fibers: dict[Fiber, None] = {}
        self._closing = False

    # --- what fibers call ------------------------------------------------------------------------

    def park(self, deadline_s: float | None, where: str) -> bool:
        """Stop the running fiber until `wake` or the deadline; True if it was woken."""
        fiber = self.current
        assert fiber is not None, f"{where} waits outside the simulated world"
        fiber.woken, fiber.parked_at = False, where
        turn = fiber.turn = next(self._numbers)
        if deadline_s is not None:
            self.at(deadline_s, lambda: self._resume(fiber, turn, woken=False))
        self.hub.switch()
        return fiber.woken

    def wake(self, fiber: Fiber) -> None:
        """Let a parked fiber run; one that is not parked stays as it is."""
        self._resume(fiber, fiber.turn, woken=True)

    def yield_(self, where: str) -> None:
        """Let other fibers run first, if the seed wants it."""
        fiber = self.current
        if fiber is None:
            return
        fiber.parked_at = where
        self._let_run(fiber)
        self.hub.switch()

    def sleep(self, seconds: float) -> None:
        self.park(self.now + seconds, "sleep")

    # --- what shapes a history -------------------------------------------------------------------

    def spawn(self, process: Process, name: str, target: Callable[[], Any]) -> Fiber:
        fiber = Fiber(self, process, name, target)
        self._fibers[fiber] = None
        self._let_run(fiber)
        return fiber

    def forget(self, fiber: Fiber) -> None:
        """Drop a fiber that has ended."""
        self._fibers.pop(fiber, None)

    def at(self, when_s: float, action: Callable[[], None]) -> None:
        """Run `action` on the hub at a time; it must not park."""
        when_s = when_s if when_s > self.now else self.now  # `max` is slower
        heapq.heappush(self._timers, (when_s, next(self._numbers), action))

    def note(self, line: str) -> None:
        """Add a line to the trace, unless the history is over."""
        if not self._closing:
            self.trace.append(f"{self.now - 1000:9.4f}  {line}")

    def kill(self, process: Process) -> None:
        """End a process as SIGKILL does: its fibers never run again."""
        if process.is_dead:
            return
        process.is_dead = True
        self.resume(process)
        self._ready = [fiber for fiber in self._ready if fiber.process is not process]
        for action in process.on_death:
            action()

    def pause(self, process: Process) -> None:
        if not (process.is_paused or process.is_dead):
            process.is_paused = True
            self._paused += 1

    def resume(self, process: Process) -> None:
        if process.is_paused:
            process.is_paused = False
            self._paused -= 1

    def run(self, until: Callable[[], bool], longest_s: float) -> None:
        """Run fibers until `until()`, which is asked when none is ready; raises `Endless` when the
        history does not get there."""
        end_s = self.now + longest_s
        while True:
            self._run_ready()
            if until():
                return
            if self.now > end_s or self.switches > MOST_SWITCHES:
                raise Endless(f"still running after {self.now - 1000:.0f} s: {self.waiting()}")
            if not self._timers:
                raise Endless(f"nothing can run any more: {self.waiting()}")
            self.now, _, action = heapq.heappop(self._timers)
            action()

    def waiting(self) -> str:
        """The fibers of living processes and where they are parked."""
        alive = [f for f in self._fibers if not f.done and not f.process.is_dead]
        return "; ".join(f"{f.process.name}/{f.name} at {f.parked_at}" for f in alive)

    def close(self) -> None:
        """Unwind fibers that have not ended; what they do meanwhile does not matter any more."""
        self._closing = True
        for fiber in self._fibers:
            fiber.process.is_dead = True
        for fiber in list(self._fibers):
            if fiber.greenlet and not fiber.greenlet.dead:
                self.current = None
                fiber.greenlet.throw(greenlet.GreenletExit)

    # --- inside ----------------------------------------------------------------------------------

    def _run_ready(self) -> None:
        """Run ready fibers, one chosen after the other, until none is left."""
        while ready := self._able() if self._paused else self._ready:
            count = len(ready)
            chosen = ready[self._below(count) if count > 1 else 0]
            self._ready.remove(chosen)
            self._switch(chosen)
            if self.switches > MOST_SWITCHES:
                return

    def _able(self) -> list[Fiber]:
        """The ready fibers of processes that have not stopped."""
        return [fiber for fiber in self._ready if not fiber.process.is_paused]

    def _below(self, count: int) -> int:
        """A number below `count`, as of `Random.randrange`, which is slower."""
        size = count.bit_length()
        while (number := self._bits(size)) >= count:
            pass
        return number

    def _switch(self, fiber: Fiber) -> None:
        self.switches += 1
        self.current = fiber
        fiber.greenlet.switch()
        self.current = None

    def _resume(self, fiber: Fiber, turn: int, *, woken: bool) -> None:
        if fiber.turn == turn and turn != -1 and not fiber.done:
            fiber.turn, fiber.woken = -1, woken
            self._let_run(fiber)

    def _let_run(self, fiber: Fiber) -> None:
        if not fiber.process.is_dead:
            self._ready.append(fiber)
