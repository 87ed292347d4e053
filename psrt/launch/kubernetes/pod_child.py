"""A process of a launch in a pod, or in several one after the other if its Job replaces them."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Sequence

from psrt.core import whole_file
from psrt.launch.kubernetes.pod_facts import JobFacts, PodFacts
from psrt.launch.outputs import last_lines
from psrt.launch.plan import FOLLOWED, PSERVER, TRAINER, ChildId, Command

_KILLED = 137
_STOPPED = 143


class PodChild:
    """One process; `say` gets its news, and the output of the process that is followed.

    `address` is that of a pserver, which is its endpoint once its pod is ready.
    """

    def __init__(
        self,
        command: Command,
        address: str,
        now: float,
        say: Callable[[str], None],
        send_signal: Callable[[ChildId, signal.Signals], None],
    ) -> None:
        self.command = command
        self.code: int | None = None
        self.seconds, self.endpoint, self.host = 0.0, "", ""
        self.pid = 1  # in its container
        self._address, self._started_at = address, now
        self._say, self._send_signal = say, send_signal
        self._ended_with: int | None = None
        self._is_asked_to_end = False
        self._seen: set[str] = set()
        self._partial = b""
        command.result.unlink(missing_ok=True)  # files of an earlier run
        command.log.unlink(missing_ok=True)
        command.log.touch()

    @property
    def child(self) -> ChildId:
        return self.command.child

    @property
    def log(self) -> str:
        return str(self.command.log)

    def has_just_ended(self, now: float) -> bool:
        if self.code is not None or self._ended_with is None:
            return False
        self.code, self.seconds = self._ended_with, now - self._started_at
        return True

    @property
    def has_ended(self) -> bool:
        """True once its end is known."""
        return self._ended_with is not None

    def send(self, number: signal.Signals) -> None:
        if not self.has_ended:
            self._is_asked_to_end |= number != signal.SIGUSR1
            self._send_signal(self.child, number)

    def last_lines(self) -> str:
        return last_lines(self.command.log)

    def write(self, raw: bytes) -> None:
        """Append output of the pod to the log."""
        with self.command.log.open("ab") as log:
            log.write(raw)
        if self.child == FOLLOWED:
            *lines, self._partial = (self._partial + raw).split(b"\n")
            for line in lines:
                self._say(line.decode(errors="replace"))

    def update(self, pods: Sequence[PodFacts], job: JobFacts | None, *, is_logged: bool) -> None:
        """Take over what is known of its pods, the newest one last, and their Job.

        The end counts once `is_logged`: all output of the newest pod has arrived.
        """
        pod = pods[-1] if pods else None
        if pod is None or self.has_ended:
            self._end_if(pod is None and self._is_over(job), _STOPPED)
            return
        self.host = pod.node or self.host
        if pod.is_ready and self.child.role == PSERVER and not self.endpoint:
            self.endpoint = self._address
        for each in pods:
            self._tell(each)
        may_come_again = pod.code and not self._is_over(job)
        if pod.code is not None and is_logged and not may_come_again:
            self._end(pod.code)

    def _is_over(self, job: JobFacts | None) -> bool:
        """True if no pod will take the place of one that failed or is gone."""
        return self._is_asked_to_end or (job is not None and bool(job.failure))

    def _tell(self, pod: PodFacts) -> None:
        """Say once what a pod waits for, and that it failed."""
        news = ""
        if pod.waits_for and not pod.has_started:
            news = f"{self.child} waits: {pod.waits_for}"
        elif pod.code and not self._is_asked_to_end:
            news = f"{self.child} ended with exit code {pod.code}, in pod {pod.name}"
        if news and news not in self._seen:
            self._seen.add(news)
            self._say(news)

    def _end_if(self, is_over: bool, code: int) -> None:
        if is_over and not self.has_ended:
            self._end(code)

    def _end(self, code: int) -> None:
        self._ended_with = -9 if code == _KILLED else code
        if self._partial:
            self._say(self._partial.decode(errors="replace"))
        if self.child.role == TRAINER and code == 0:
            whole_file.write(self.command.result, report_in(self._last_text()))

    def _last_text(self) -> str:
        return last_lines(self.command.log, 2000)


def report_in(text: str) -> str:
    """Return the report at the end of a trainer's output: the last JSON object of many lines."""
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if line == "{"]
    for start in reversed(starts):
        try:
            found, _ = json.JSONDecoder().raw_decode("\n".join(lines[start:]))
        except ValueError:
            continue
        return json.dumps(found, indent=2) + "\n"
    return "{}\n"
