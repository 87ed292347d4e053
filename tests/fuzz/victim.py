"""`python -m tests.fuzz.victim FACTS`: servers that admit everybody, in a process of their own.

A pserver over every carrier, the port by which a trainer receives records in a global shuffle, and
pages over HTTP. FACTS is the file that gets their addresses. The job behind the pserver begins anew
now and then, because frames end it. Ends when its standard input does.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

from psrt.core import whole_file
from psrt.core.log import configure
from psrt.core.threads import CrashReport
from psrt.kernels.jit import warm_up
from psrt.observe.http_server import HttpPage, HttpServer
from psrt.pserver.serving.service import PserverService
from psrt.rpc.server import Server
from psrt.rpc.serving import Later, Peer
from psrt.rpc.wire import Message
from psrt.trainer.shuffle.inbox import Inbox
from tests.fuzz.parsers import TABLE_BYTES
from tests.fuzz.seeds import JOB, TRAINERS, nothing

CALLS_OF_A_JOB = 5_000
WAIT_S = 1.0
SHARED_BYTES = 1 << 20


class Victim:
    """A pserver and the inbox of a trainer, made anew after some calls."""

    def __init__(self, crashes: CrashReport) -> None:
        self._crashes, self._calls = crashes, 0
        self._begin()

    def call(self, message: Message, peer: Peer) -> Message | Later:
        self._calls += 1
        if self._calls % CALLS_OF_A_JOB == 0:
            before = self._service
            self._begin()
            before.stop()
        return self._service.handle(message, peer)

    def record(self, message: Message, peer: Peer) -> Message:
        return self._inbox.handle(message, peer)

    def stop(self) -> None:
        self._service.stop()

    def _begin(self) -> None:
        self._inbox = Inbox(nothing(), TRAINERS, JOB)
        self._service = PserverService(
            stripes=1, wait_timeout_s=WAIT_S, table_bytes=TABLE_BYTES, crashes=self._crashes
        )
        self._service.start()


class Defects(logging.Handler):
    """Counts log lines with a traceback."""

    count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += record.exc_info is not None


def main(facts: Path) -> None:
    crashes, defects = CrashReport(), Defects()
    logging.getLogger("psrt").addHandler(defects)
    warm_up(["pserver"])
    victim = Victim(crashes)
    pserver = Server(victim.call, unix_dir="", shared_bytes=SHARED_BYTES, crashes=crashes)
    shuffle = Server(victim.record, crashes=crashes)
    for server in (pserver, shuffle):
        server.start()
    page = HttpPage(b"a page\n")
    http = HttpServer("127.0.0.1:0", {"/metrics": lambda accept: page}, crashes)
    found = {
        "grpc": pserver.endpoint,
        "stream": pserver.data_endpoints[0],
        "unix": pserver.unix_path,
        "shuffle": shuffle.data_endpoints[0],
        "shuffle grpc": shuffle.endpoint,
        "http": http.endpoint,
    }
    whole_file.write(facts, json.dumps(found))
    sys.stdin.read()
    for server in (pserver, shuffle):
        server.stop(1.0)
    http.close()
    victim.stop()
    crashes.check()
    sys.exit(defects.count > 0)


if __name__ == "__main__":
    configure("victim", "WARNING")
    main(Path(sys.argv[1]))
