"""The part that a process is the home of: its service, and the stream of ticks to its backup."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from psrt.core.errors import PsrtError
from psrt.core.log import add_fields
from psrt.core.threads import CrashReport
from psrt.pserver.decisions import JobIdentity
from psrt.pserver.replicas.process_end import Home
from psrt.pserver.replicas.replicator import Replicator, send_last
from psrt.pserver.serving import PserverService
from psrt.rpc.dialing import Carrier

log = logging.getLogger("psrt.pserver")


class HomePart:
    """One part, served in epoch 0 by `service`; any thread calls this.

    `make` makes the service. `on_left` is called when the other pserver of the pair serves the
    part, or will, and `on_end(error)` when it has ended here. `number` is 0 until it is known.
    """

    def __init__(
        self,
        make: Callable[..., PserverService],
        every_s: float,
        carrier: Carrier,
        crashes: CrashReport,
        on_left: Callable[[], None],
        on_end: Callable[[PsrtError | None], None],
    ) -> None:
        self.state, self.number = Home.UNUSED, 0
        self._every_s, self._carrier, self._crashes = every_s, carrier, crashes
        self._on_left, self._on_end = on_left, on_end
        self._replicator: Replicator | None = None
        self._lock = threading.Lock()
        self.service = make(on_end=self._ended, on_registered=self._registered)

    @property
    def is_fenced(self) -> bool:
        """True once the other pserver of the pair serves the part, or will."""
        return self.state is Home.FENCED

    def is_elsewhere(self, number: int) -> None:
        """Record that the other pserver of the pair serves the part, of this number."""
        with self._lock:
            was_fenced = self.is_fenced
            self.state, self.number = Home.FENCED, number
        if not was_fenced:
            self.service.stop()
            self._on_left()

    def finish(self) -> None:
        """Send what the backup lacks, as far as it can be reached."""
        if self._replicator is not None:
            send_last(self._replicator)

    def close(self) -> None:
        """End the stream of ticks."""
        if self._replicator is not None:
            self._replicator.close()

    def _registered(
        self, job: JobIdentity, endpoints: Sequence[str], part: int, is_replicated: bool
    ) -> None:
        """Send the part to its backup, if the job has some; called by trainers that join."""
        add_fields(job=job.job_id, pserver=part)
        if not is_replicated:
            return
        with self._lock:
            self.number = part
            if self.state is Home.UNUSED:
                self.state = Home.SERVED
            if self._replicator is not None or self.is_fenced:
                return
            self._replicator = Replicator(
                *(self.service.source(), endpoints, part, 0),
                *(self._every_s, self._carrier, self._fenced),
            )
        self._replicator.start(self._crashes)

    def _fenced(self, error: PsrtError) -> None:
        log.warning("this pserver no longer serves its part: %s", error)
        self.is_elsewhere(self.number)

    def _ended(self, error: PsrtError | None) -> None:
        if error is None:
            with self._lock:
                self.state = self.state if self.is_fenced else Home.ENDED
        self._on_end(error)
