"""Gradients that wait to be pushed: bounded per parameter, merged by sum or average.

The training thread puts the gradients of one step; before that, threads of the executor may offer
some of them as soon as they are final. Sender threads take the queued groups, each merged of at
most `max_merge` gradients.

`put` blocks while a queue is full (back-pressure: a trainer cannot run away from its pservers) and
raises an error that names the queue at its deadline. `drain` waits until everything was sent;
nothing is ever dropped silently.
"""

from __future__ import annotations

import threading
from collections import deque

from psrt.communicator.async_.gradient_queue import GradientQueue, Merged
from psrt.communicator.base import Gradient, Gradients, Position, Versions, no_position
from psrt.communicator.requests import Copies, Settled
from psrt.core import tracing
from psrt.core.errors import DeadlineError

EARLY_BYTES = 2 << 20
"""Least size, per pserver on average, of a push before the end of its step.

A call costs trainer and pserver 0.4 ms of CPU time together before its first byte, and 1.0 ms for
each MiB (4 KiB against 4 MiB of a dense gradient with SGD, stream carrier, one pserver, on a busy
host of two cores). Early pushes make gradients younger, but take more calls: these may cost a fifth
more, not twice as much.
"""


class MergeQueue:
    """The queues of all parameters behind one condition.

    A step is open from the first `offer` of one of its gradients until it is `put`. Invariants:

    - A gradient of a step is in one group, once: an offered gradient is not put again.
    - No queue holds more gradients of ended steps than there are in `_steps`, so taking until no
      step is left takes every gradient.
    - A step leaves `_steps`, and is counted, when none of its gradients waits any longer.

    The gradient offered last waits for the end of its step, unless another one follows. So every
    step is counted by a push that carries gradients. Gradients are copied by `copies`; without it
    they are not, and nobody may write to one that was given here.
    """

    def __init__(
        self,
        capacity: int,
        max_merge: int,
        linger_s: float,
        average: bool = False,
        pservers: int = 1,
        copies: Copies | None = None,
    ) -> None:
        self._capacity, self._max_merge, self._linger_s = capacity, max_merge, linger_s
        self._average, self._copies = average, copies
        self._enough = min(max_merge, capacity)
        self._early_bytes = EARLY_BYTES * pservers
        self._changed = threading.Condition()
        self._queues: dict[str, GradientQueue] = {}
        self._steps: deque[Versions] = deque()
        self._offered: set[str] = set()
        self._offered_bytes = 0
        self._newest: str | None = None
        self._open_versions: Versions = {}
        self._under_way: list[Merged] = []
        self._last_step = self._counted = self._apart_to = 0  # last steps: put, counted, not merged
        self._places = {0: ""}  # where data go on, by step
        self._spans: dict[int, tracing.TracedSpan] = {}  # of traced steps that are not counted
        self._draining = False
        self._paused = False
        self._closed = False
        self.position: Position = no_position

    # --- the trainer ------------------------------------------------------------------------------

    def begin_behind(self, step: int, place: str, apart_to: int) -> None:
        """Count steps on from `step`, with data at `place`; up to `apart_to` merge none."""
        self._last_step = self._counted = step
        self._places, self._apart_to = {step: place}, apart_to

    def offer(self, name: str, gradient: Gradient, versions: Versions) -> bool:
        """Queue one gradient of the open step; False, without waiting, if there is no room."""
        with self._changed:
            queue = self._queue(name)
            if self._closed or name in self._offered or queue.waiting >= self._capacity:
                return False
            if self._paused and not self._offered:
                return False
            if not self._offered:
                self._open_versions = versions
            queue.put(gradient, self._last_step + 1)
            self._offered.add(name)
            self._offered_bytes += queue.next_bytes
            self._newest = name
            if self._leaves_early():
                self._changed.notify_all()
            return True

    def put(
        self,
        gradients: Gradients,
        versions: Versions,
        timeout_s: float,
        position: Position = no_position,
        place: str = "",
    ) -> bool:
        """Queue what was not offered, and end the step; False if the queue is closed.

        The trainer goes on at `position`, its data at `place`. Raises `DeadlineError` if a queue
        stays full for `timeout_s`.
        """
        with self._changed:
            rest = [name for name in gradients if name not in self._offered]
            queues = {name: self._queue(name) for name in rest}
            if not self._changed.wait_for(
                lambda: self._closed or not (self._full(queues) or self._is_shut()), timeout_s
            ):
                raise self._overflow(self._full(queues), timeout_s)
            if self._closed:
                return False
            for name, queue in queues.items():
                queue.put(gradients[name], self._last_step + 1)
            self._last_step += 1
            self._places[self._last_step] = place
            self._steps.append(versions)
            if (span := tracing.current()) is not None:
                self._spans[self._last_step] = span
            self.position = position
            self._offered.clear()
            self._offered_bytes, self._newest = 0, None
            self._changed.notify_all()
            return True

    def drain(self, timeout_s: float) -> bool:
        """Wait until all steps put were sent; False at the deadline, or if closed before that."""
        with self._changed:
            self._draining = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._closed or self._idle(), timeout_s)
            self._draining = False
            return self._idle()

    def pause(self, timeout_s: float) -> bool:
        """Let no further step begin, and wait until the last one has ended and all were sent.

        A trainer that computes its predecessor's steps again ends those first. False at the
        deadline or once closed; call `resume` in either case.
        """
        with self._changed:
            self._changed.wait_for(self._is_caught_up, timeout_s)
            self._paused = self._draining = True
            self._changed.notify_all()
            self._changed.wait_for(
                lambda: self._closed or (not self._offered and self._idle()), timeout_s
            )
            self._draining = False
            is_idle = not self._offered and self._idle()
            return not self._closed and is_idle and self._is_caught_up()

    def resume(self) -> None:
        """Let steps begin again."""
        with self._changed:
            self._paused = False
            self._changed.notify_all()

    def close(self) -> None:
        """End every wait; queued gradients stay in the queue (`waiting` counts them)."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    @property
    def waiting(self) -> int:
        """The number of gradients not taken yet."""
        with self._changed:
            return sum(queue.waiting for queue in self._queues.values())

    @property
    def unanswered(self) -> int:
        """The number of steps put that pservers do not have as a whole."""
        with self._changed:
            under_way = sum(merged.steps for merged in self._under_way)
            return len(self._steps) + under_way

    # --- the senders ------------------------------------------------------------------------------

    def take(self) -> Merged | None:
        """Wait for gradients, linger for more of them, take the oldest group of every parameter.

        Call `sent` when pservers have them. Returns None once the queue is closed. The wait for
        work has no deadline: `close` ends it.
        """
        with self._changed:
            is_late = self._has_work()
            while not self._closed:
                self._changed.wait_for(self._has_work)
                self._changed.wait_for(self._worth_sending, self._linger_s)
                if not self._closed and self._has_work():  # unless another sender was faster
                    merged = self._take_groups(is_late)
                    self._changed.notify_all()
                    return merged
            return None

    def sent(self, merged: Merged) -> None:
        """The taken gradients are in the tables."""
        with self._changed:
            self._under_way = [each for each in self._under_way if each is not merged]
            self._changed.notify_all()

    # --- with the lock held -----------------------------------------------------------------------

    def _is_shut(self) -> bool:
        """True if no step may be put; one that has begun ends first."""
        return self._paused and not self._offered

    def _is_caught_up(self) -> bool:
        return self._closed or self._last_step >= self._apart_to

    def _idle(self) -> bool:
        return not self._steps and not self._under_way

    def _has_work(self) -> bool:
        return self._closed or bool(self._steps) or self._leaves_early()

    def _worth_sending(self) -> bool:
        """True if waiting would not enlarge the next push, or would delay `drain`."""
        longest = max((queue.waiting for queue in self._queues.values()), default=0)
        return self._closed or self._draining or longest >= self._enough

    def _leaves_early(self) -> bool:
        """True if full groups reach `EARLY_BYTES`; groups that may still grow do not count."""
        if self._offered_bytes < self._early_bytes:
            return False
        ready = (self._queues[name] for name in self._ready())
        full = (queue.next_bytes for queue in ready if queue.waiting >= self._enough)
        return sum(full) >= self._early_bytes

    def _ready(self) -> list[str]:
        """The parameters whose oldest group may leave."""
        return [n for n, queue in self._queues.items() if n != self._newest or queue.waiting > 1]

    def _queue(self, name: str) -> GradientQueue:
        if name not in self._queues:
            self._queues[name] = GradientQueue(self._copies, self._max_merge, self._apart_to)
        return self._queues[name]

    def _full(self, queues: dict[str, GradientQueue]) -> list[str]:
        return [name for name, queue in queues.items() if queue.waiting >= self._capacity]

    def _take_groups(self, is_late: bool) -> Merged:
        versions = self._steps[0] if self._steps else self._open_versions
        taken = {name: self._queues[name].take() for name in self._ready()}
        groups = {name: group for name, group in taken.items() if group is not None}
        # Pushes carry step counts for learning-rate schedules. As many steps stay as the longest
        # queue has gradients, so every step is counted once, also one that had no gradient.
        steps = len(self._steps) - max(map(self._ended, self._queues), default=0)
        for _ in range(steps):
            self._steps.popleft()
        counted, self._counted = self._counted + 1, self._counted + steps
        settled = self._settled([group.first for group in groups.values()], counted)
        spans = [self._spans.pop(step, None) for step in range(counted, counted + steps)]
        span = next(filter(None, spans), None)
        merged = Merged(groups, steps, versions, self._average, is_late, counted, settled, span)
        self._under_way.append(merged)
        return merged

    def _settled(self, taken: list[int], counted: int) -> Settled:
        """The steps all of whose gradients were answered, and are counted."""
        waiting = [q.oldest for q in self._queues.values() if q.oldest is not None]
        under_way = [merged.first for merged in self._under_way]
        step = min([*taken, *waiting, *under_way, counted, self._last_step + 1]) - 1
        self._places = {each: place for each, place in self._places.items() if each >= step}
        return Settled(step, self._places[step])

    def _ended(self, name: str) -> int:
        """The number of waiting gradients of a parameter that belong to ended steps."""
        waiting = self._queues[name].waiting
        return waiting - 1 if waiting and name in self._offered else waiting

    def _overflow(self, full: list[str], timeout_s: float) -> DeadlineError:
        return DeadlineError(
            f"the send queue of {', '.join(full)} stayed full ({self._capacity} gradients) for "
            f"{timeout_s:.1f} s: the pservers take gradients slower than this trainer makes them. "
            "The rest of this step's gradients was not queued.",
            hint="Raise [communication] max_merge_var_num, or add pservers.",
        )
