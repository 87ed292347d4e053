"""Turns of the training thread and of a cut, which copies the parameters while that thread rests.

    training thread   step ─ step ─ rest ───── step ─ step ─ (exchange is due: waits) ─ exchange ─
    cut               wants a copy ─ copies ─ CUT ─────────── all tables frozen ─ sends the copy ─

Training rests at the end of a step, and while it waits for other trainers. From the copy on no
exchange starts until the tables are frozen.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from psrt.core.errors import DeadlineError, ErrorCode, JobError


class CutTurns:
    """Shared by the training thread and the thread that takes part in cuts."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_wanted = self._is_resting = self._is_copying = False
        self._holds_pushes = self._takes_part = self._has_ended = False

    # --- the training thread ----------------------------------------------------------------------

    def step_ended(self) -> None:
        """Rest until a cut that wants a copy has it."""
        if self._is_wanted:
            self.rest()
            with self._changed:
                self._changed.wait_for(lambda: not self._is_wanted)
            self.work()

    def rest(self) -> None:
        """Leave the parameters alone until `work`."""
        with self._changed:
            self._is_resting = True
            self._changed.notify_all()

    def work(self) -> None:
        """Change parameters again; waits while a cut copies them."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_copying)
            self._is_resting = False

    @property
    def holds_pushes(self) -> bool:
        """True from a copy until its cut is frozen; it cannot begin while training works."""
        return self._holds_pushes

    def await_frozen(self, timeout_s: float) -> None:
        """Wait until a push would be behind the cut; raises `DeadlineError`."""
        with self._changed:
            if not self._changed.wait_for(lambda: not self._holds_pushes, timeout_s):
                raise DeadlineError(
                    f"a cut held the exchange of changes back for {timeout_s:.1f} s.",
                    hint="See the logs of the pservers: one of them does not answer.",
                )

    def end(self, timeout_s: float = 0.0) -> None:
        """Take part in no further cut; wait for the one under way, as long as `timeout_s`."""
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._takes_part, timeout_s)

    # --- the thread of cuts -----------------------------------------------------------------------

    @contextmanager
    def taking_part(self) -> Iterator[None]:
        """Let `end` wait for the block, in which the trainer takes part in one cut."""
        with self._changed:
            if self._has_ended:
                raise _ended()
            self._takes_part = True
        try:
            yield
        finally:
            with self._changed:
                self._takes_part = False
                self._changed.notify_all()

    @contextmanager
    def pushes_held(self) -> Iterator[None]:
        """Let no exchange start between a copy, the first thing in the block, and its end."""
        try:
            yield
        finally:
            with self._changed:
                self._holds_pushes = False
                self._changed.notify_all()

    @contextmanager
    def copying(self, timeout_s: float) -> Iterator[None]:
        """Keep the training thread at rest inside the block; raises `DeadlineError` if no step
        ends in time, and `JobError` if the trainer leaves."""
        with self._changed:
            self._is_wanted = True
            came = self._changed.wait_for(lambda: self._is_resting or self._has_ended, timeout_s)
            self._is_copying = self._holds_pushes = self._is_resting
        try:
            if not came:
                raise DeadlineError(
                    f"no step ended within {timeout_s:.1f} s, so this trainer does not take part "
                    "in a cut; training goes on."
                )
            if not self._is_copying:
                raise _ended()
            yield
        finally:
            with self._changed:
                self._is_wanted = self._is_copying = False
                self._changed.notify_all()


def _ended() -> JobError:
    return JobError(
        "this trainer is about to leave and takes part in no further cut.",
        code=ErrorCode.CUT_GIVEN_UP,
    )
