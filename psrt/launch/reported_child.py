"""A process that something else has started: its output and its end are reported to the launch."""

from __future__ import annotations

from collections.abc import Callable

from psrt.launch.outputs import LineSplitter, last_lines
from psrt.launch.plan import FOLLOWED, ChildId, Command


class ReportedChild:
    """A child whose log and result file are those of the command, on this host.

    `say` receives the standard output of the process that is followed, line by line. Subclasses
    add `send`, and set `pid`, `host` and `endpoint` as they learn of them.
    """

    def __init__(self, command: Command, now: float, say: Callable[[str], None]) -> None:
        self.command = command
        self.code: int | None = None
        self.seconds, self.endpoint, self.host, self.pid = 0.0, "", "", 0
        self._started_at, self._say = now, say
        self._ended_with: int | None = None
        self._lines = LineSplitter()
        command.result.unlink(missing_ok=True)  # files of an earlier run
        if not command.keeps_log:
            command.log.unlink(missing_ok=True)
        command.log.touch()

    @property
    def child(self) -> ChildId:
        return self.command.child

    @property
    def log(self) -> str:
        return str(self.command.log)

    @property
    def has_ended(self) -> bool:
        """True once its end was reported."""
        return self._ended_with is not None

    def has_just_ended(self, now: float) -> bool:
        """Return True once, at the first call after its end counts."""
        ended_at = self.ended_at(now)
        if self.code is not None or ended_at is None:
            return False
        self.code, self.seconds = self._ended_with, ended_at - self._started_at
        return True

    def ended_at(self, now: float) -> float | None:
        """The time of its end; None while that does not count."""
        return now if self.has_ended else None

    def last_lines(self) -> str:
        return last_lines(self.command.log)

    def append(self, raw: bytes, *, is_said: bool = True) -> None:
        """Append output to its log, and say the lines of the process that is followed."""
        with self.command.log.open("ab") as log:
            log.write(raw)
        if is_said and self.child == FOLLOWED:
            for line in self._lines.feed(raw):
                self._say(line.decode(errors="replace"))

    def end(self, code: int) -> None:
        """Note its end, and say an unfinished line."""
        self._ended_with = code
        if self._lines.rest:
            self._say(self._lines.rest.decode(errors="replace"))
