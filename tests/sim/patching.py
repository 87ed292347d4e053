"""The primitives of a `World` in place of `threading` and `time` in the modules of psrt.

Only what modules look up when they run is replaced, and only until the block ends. Classes that
derive from `threading.local` keep the real one: fibers of one process share it.
"""

from __future__ import annotations

import gc
import queue
import random
import sys
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from concurrent.futures import _base
from contextlib import contextmanager
from functools import cache, partial
from types import ModuleType
from typing import Any

from psrt.core.randomness import system_random
from tests.sim.modules import Threading, Time
from tests.sim.primitives import SimpleQueue, wait
from tests.sim.world import World

ROOMS = (
    "psrt.core",
    "psrt.rpc",
    "psrt.pserver",
    "psrt.communicator",
    "psrt.trainer",
    "psrt.storage",
)
EXCEPT = ("psrt.rpc.grpc_", "psrt.rpc.aio_loop")
"""Modules that a simulated cluster does not use, and that hold real threads."""


RARE_COLLECTIONS = (200_000, 20, 20)
"""Thresholds of `gc`: with its own, collections take a twentieth of the time of a history."""


@contextmanager
def simulated(world: World) -> Iterator[None]:
    """Let the modules of psrt run on the fibers, the clock and the randomness of `world`."""
    _leave_out_of_collections()
    replaced: list[tuple[ModuleType, str, Any]] = []
    substitutes = _substitutes(world)
    for module, name in _places(len(sys.modules)):
        value = getattr(module, name)
        replaced.append((module, name, value))
        setattr(module, name, substitutes[id(value)])
    thresholds = gc.get_threshold()
    gc.set_threshold(*RARE_COLLECTIONS)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        for module, name, value in replaced:
            setattr(module, name, value)


@cache
def _leave_out_of_collections() -> None:
    """Let garbage collections, which pservers ask for, look at the objects of histories only."""
    gc.collect()
    gc.freeze()


def _substitutes(world: World) -> dict[int, Any]:
    """By identity of each of `_REAL`."""
    return {
        id(threading): Threading(world),
        id(time): Time(world),
        id(system_random): random.Random(world.random.getrandbits(64)),
        id(queue.SimpleQueue): type("SimpleQueue", (SimpleQueue,), {"world": world}),
        id(futures.wait): partial(wait, world),
    }


_REAL = (threading, time, system_random, queue.SimpleQueue, futures.wait)


@cache
def _places(loaded: int) -> list[tuple[ModuleType, str]]:
    """The modules and names that refer to one of `_REAL`, once `loaded` modules are loaded."""
    real = set(map(id, _REAL))
    return [(m, name) for m in _modules() for name, v in vars(m).items() if id(v) in real]


def _modules() -> Iterator[ModuleType]:
    for name, module in sorted(sys.modules.items()):
        if name.startswith(ROOMS) and not name.startswith(EXCEPT):
            yield module
    yield _base  # futures wait by conditions
