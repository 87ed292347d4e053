"""Substitutes of the modules `threading` and `time`, with those attributes that psrt uses."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from tests.sim.primitives import Condition, Event, Local, Lock, RLock, Thread
from tests.sim.world import World


class Threading:
    """The attributes of the module `threading` that psrt uses, over one `World`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._main = Thread(world, name="MainThread")
        self.Lock = partial(Lock, world)
        self.RLock = partial(RLock, world)
        self.Condition = partial(Condition, world)
        self.Event = partial(Event, world)
        self.Thread = partial(Thread, world)
        self.local = partial(Local, world)

    def current_thread(self) -> Thread:
        found = Thread(self._world)
        found.fiber = self._world.current
        found.name = found.fiber.name if found.fiber else "hub"
        return found

    def main_thread(self) -> Thread:
        return self._main

    def get_ident(self) -> int:
        return id(self._world.current)


class Time:
    """The module `time` on the virtual clock."""

    def __init__(self, world: World) -> None:
        self._world = world

    def monotonic(self) -> float:
        return self._world.now

    perf_counter = time = monotonic

    def sleep(self, seconds: float) -> None:
        self._world.sleep(seconds)

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)
