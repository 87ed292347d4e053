"""Locks, conditions, events, threads, queues and futures for the fibers of a `World`.

Each acquisition of a lock is a place where another fiber may run first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, FIRST_EXCEPTION, Future
from typing import Any, NamedTuple, TypeVar

from tests.sim.world import Fiber, World

T = TypeVar("T")

PREEMPTION = 0.1
"""Probability that a fiber gives way when it takes a lock."""


class HeldLock(AssertionError):
    """A fiber holds a lock that somebody outside the fibers asks for."""


class Lock:
    """A lock without an owner, as `threading.Lock`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._held = False
        self._waiting: deque[Fiber] = deque()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        world = self._world
        if world.current is not None and world.draw() < PREEMPTION:
            world.yield_("lock")
        if self._held and not self._awaited(blocking, timeout):
            return False
        self._held = True
        return True

    def _awaited(self, blocking: bool, timeout: float) -> bool:
        """Wait until nobody holds the lock; False if the time for it is over."""
        world = self._world
        deadline_s = None if timeout < 0 else world.now + timeout
        while self._held:
            if not blocking:
                return False
            fiber = world.current
            if fiber is None:
                raise HeldLock("a lock is held across the end of its fiber")
            self._waiting.append(fiber)
            if not world.park(deadline_s, "lock") and self._held:
                self._forget(fiber)
                return False
        return True

    def release(self) -> None:
        self._held = False
        if self._waiting:
            self._world.wake(self._waiting.popleft())

    def locked(self) -> bool:
        return self._held

    def _forget(self, fiber: Fiber) -> None:
        if fiber in self._waiting:
            self._waiting.remove(fiber)

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *raised: object) -> None:
        self.release()


class RLock(Lock):
    """A lock that its owner may take again; written out, as most of all calls are its."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._owner: Fiber | None = None
        self._depth = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        world = self._world
        fiber = world.current
        if self._depth and self._owner is fiber:
            self._depth += 1
            return True
        if fiber is not None and world.draw() < PREEMPTION:
            world.yield_("lock")
        if self._held and not self._awaited(blocking, timeout):
            return False
        self._held, self._owner, self._depth = True, fiber, 1
        return True

    def release(self) -> None:
        self._depth -= 1
        if not self._depth:
            self._owner, self._held = None, False
            if self._waiting:
                self._world.wake(self._waiting.popleft())


class Condition:
    """A condition over a lock, as `threading.Condition`."""

    def __init__(self, world: World, lock: Lock | None = None) -> None:
        self._world = world
        self._lock = lock or RLock(world)
        self._waiting: list[Fiber] = []
        self.acquire, self.release = self._lock.acquire, self._lock.release

    def wait(self, timeout: float | None = None) -> bool:
        fiber = self._world.current
        assert fiber is not None, "a condition is awaited outside the simulated world"
        self._waiting.append(fiber)
        self._lock.release()
        deadline_s = None if timeout is None else self._world.now + max(0.0, timeout)
        woken = self._world.park(deadline_s, "condition")
        if fiber in self._waiting:
            self._waiting.remove(fiber)
        self._lock.acquire()
        return woken

    def wait_for(self, predicate: Callable[[], T], timeout: float | None = None) -> T:
        end_s = None if timeout is None else self._world.now + timeout
        while not (found := predicate()):
            left_s = None if end_s is None else end_s - self._world.now
            if left_s is not None and left_s <= 0:
                break
            self.wait(left_s)
        return found

    def notify(self, n: int = 1) -> None:
        woken, self._waiting = self._waiting[:n], self._waiting[n:]
        for fiber in woken:
            self._world.wake(fiber)

    def notify_all(self) -> None:
        self.notify(len(self._waiting))

    def __enter__(self) -> bool:
        return self._lock.acquire()

    def __exit__(self, *raised: object) -> None:
        self._lock.release()


class Event:
    """A flag that fibers wait for, as `threading.Event`."""

    def __init__(self, world: World) -> None:
        self._condition = Condition(world)
        self._flag = False

    def is_set(self) -> bool:
        return self._flag

    def set(self) -> None:
        self._flag = True
        self._condition.notify_all()

    def clear(self) -> None:
        self._flag = False

    def wait(self, timeout: float | None = None) -> bool:
        with self._condition:
            return self._condition.wait_for(self.is_set, timeout)


class Thread:
    """A fiber of the process whose fiber makes it, as `threading.Thread`."""

    def __init__(
        self,
        world: World,
        target: Callable[..., Any] = lambda: None,
        name: str = "thread",
        args: tuple[Any, ...] = (),
        daemon: bool = True,
    ) -> None:
        self._world, self.name, self.daemon = world, name, daemon
        self._target, self._args = target, args
        self.fiber: Fiber | None = None

    @property
    def ident(self) -> int:
        return id(self.fiber)

    def start(self) -> None:
        current = self._world.current
        assert current is not None, "a thread is started outside the simulated world"
        self.fiber = self._world.spawn(
            current.process, self.name, lambda: self._target(*self._args)
        )

    def join(self, timeout: float | None = None) -> None:
        assert self.fiber is not None
        deadline_s = None if timeout is None else self._world.now + timeout
        while not self.fiber.done:
            current = self._world.current
            assert current is not None
            self.fiber.joiners.append(current)
            if not self._world.park(deadline_s, f"join {self.name}"):
                return

    def is_alive(self) -> bool:
        return self.fiber is not None and not self.fiber.done


class SimpleQueue:
    """An unbounded queue, as `queue.SimpleQueue`; a subclass has the `world`."""

    world: World

    def __init__(self) -> None:
        self._items: deque[Any] = deque()
        self._changed = Condition(self.world)

    def put(self, item: Any) -> None:
        self._items.append(item)
        self._changed.notify()

    def __class_getitem__(cls, item: object) -> type[SimpleQueue]:
        return cls

    def get(self) -> Any:
        with self._changed:
            self._changed.wait_for(lambda: bool(self._items))
            return self._items.popleft()


def wait(
    world: World,
    fs: Iterable[Future[Any]],
    timeout: float | None = None,
    return_when: str = ALL_COMPLETED,
) -> DoneAndNotDone:
    """Wait as `concurrent.futures.wait`, whose order depends on addresses of objects."""
    futures = list(dict.fromkeys(fs))
    changed = Event(world)
    for future in futures:
        future.add_done_callback(lambda _: changed.set())

    def is_enough() -> bool:
        done = [future for future in futures if future.done()]
        failed = any(future.exception() is not None for future in done)
        early = {FIRST_COMPLETED: bool(done), FIRST_EXCEPTION: failed}.get(return_when, False)
        return early or len(done) == len(futures)

    end_s = None if timeout is None else world.now + timeout
    while end_s is None or world.now < end_s:
        changed.clear()  # before the look: a future may end during it
        if is_enough():
            break
        changed.wait(None if end_s is None else end_s - world.now)
    return DoneAndNotDone(
        [future for future in futures if future.done()],
        [future for future in futures if not future.done()],
    )


class DoneAndNotDone(NamedTuple):
    """Futures in the order given."""

    done: list[Future[Any]]
    not_done: list[Future[Any]]


class Local:
    """Attributes by fiber, as `threading.local`; subclasses with `__init__` are made per fiber."""

    def __init__(self, world: World) -> None:
        object.__setattr__(self, "_world", world)

    def _values(self) -> dict[str, Any]:
        fiber = object.__getattribute__(self, "_world").current
        return {} if fiber is None else fiber.local.setdefault(id(self), {})

    def __getattr__(self, name: str) -> Any:
        try:
            return self._values()[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self._values()[name] = value
