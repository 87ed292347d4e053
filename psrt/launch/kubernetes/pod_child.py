"""A process of a launch in a pod, or in several one after the other if its Job replaces them."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Sequence

from psrt.core import whole_file
from psrt.launch.kubernetes.pod_facts import JobFacts, PodFacts
from psrt.launch.outputs import last_lines
from psrt.launch.plan import PSERVER, TRAINER, ChildId, Command
from psrt.launch.reported_child import ReportedChild

_KILLED = 137
_STOPPED = 143


class PodChild(ReportedChild):
    """One process; `say` also gets its news.

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
        super().__init__(command, now, say)
        self.pid = 1  # in its container
        self._address, self._send_signal = address, send_signal
        self._is_asked_to_end = False
        self._seen: set[str] = set()

    def send(self, number: signal.Signals) -> None:
        if not self.has_ended:
            self._is_asked_to_end |= number != signal.SIGUSR1
            self._send_signal(self.child, number)

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
            self.end(pod.code)

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
            self.end(code)

    def end(self, code: int) -> None:
        super().end(-9 if code == _KILLED else code)
        if self.child.role == TRAINER and code == 0:
            whole_file.write(self.command.result, report_in(last_lines(self.command.log, 2000)))


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
