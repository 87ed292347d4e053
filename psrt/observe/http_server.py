"""A small HTTP server: few connections, short timeouts, GET and HEAD of known pages alone.

It reads no body and holds no state, so a client can only take a connection for some seconds.
"""

from __future__ import annotations

import contextlib
import http.server
import logging
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from psrt.core.errors import ConfigError, ErrorCode, JobError
from psrt.core.threads import CrashReport, start_thread

log = logging.getLogger("psrt.observe")

MOST_CONNECTIONS = 16
"""Connections at a time; further ones are closed at once."""
MOST_S = 10.0
"""Seconds of one connection; then it is cut off."""
_SILENCE_S = 5.0
_LOOK_EVERY_S = 0.5


@dataclass(frozen=True)
class HttpPage:
    """One answer."""

    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    status: int = 200


MakePage: TypeAlias = Callable[[str], HttpPage]
"""Makes a page from the header Accept of the request."""


class HttpServer:
    """Serves `pages` by path at `host:port` from construction to `close`; port 0 is any free one.

    Raises `ConfigError` if `address` is not host:port, and `JobError` if it cannot be listened on.
    """

    def __init__(self, address: str, pages: Mapping[str, MakePage], crashes: CrashReport) -> None:
        host, port = _split(address)
        try:
            self._server = _Listener((host, port), pages, crashes)
        except OSError as error:
            raise JobError(
                f"metrics could not be served on {address}: {error}.",
                code=ErrorCode.STARTUP_FAILED,
                hint="Choose another address for --metrics; port 0 is any free one.",
            ) from error
        bound = self._server.server_address[1]
        self.endpoint = f"[{host}]:{bound}" if ":" in host else f"{host}:{bound}"
        serve = partial(self._server.serve_forever, _LOOK_EVERY_S)
        self._thread = start_thread(serve, "metrics", crashes)

    def close(self) -> None:
        """Stop listening; answers under way are cut off."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._server.cut_off(float("inf"))


class _Listener(http.server.HTTPServer):
    """Accepts connections, and gives each a thread."""

    request_queue_size = MOST_CONNECTIONS

    def __init__(
        self, where: tuple[str, int], pages: Mapping[str, MakePage], crashes: CrashReport
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in where[0] else socket.AF_INET
        self.pages, self._crashes = pages, crashes
        self._lock = threading.Lock()
        self._open: dict[socket.socket, float] = {}  # when each connection began
        super().__init__(where, _Answer)

    def server_bind(self) -> None:
        """Bind without a look-up of the host's name, which may take seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "psrt", self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer on a thread of its own, unless there are too many."""
        with self._lock:
            is_taken = len(self._open) < MOST_CONNECTIONS
            if is_taken:
                self._open[request] = time.monotonic()
        if not is_taken:
            self.shutdown_request(request)
            return
        answer = partial(self._answer, request, client_address)
        start_thread(answer, "metrics answer", self._crashes)

    def service_actions(self) -> None:
        """Cut off connections that take too long."""
        self.cut_off(time.monotonic())

    def cut_off(self, now_s: float) -> None:
        with self._lock:
            late = [each for each, began_s in self._open.items() if now_s - began_s > MOST_S]
        for each in late:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _answer(self, request: socket.socket, client_address: Any) -> None:
        try:
            self.finish_request(request, client_address)
        except OSError as error:
            log.debug("a reader of metrics left: %s", error)
        finally:
            with self._lock:
                self._open.pop(request, None)
            self.shutdown_request(request)


class _Answer(http.server.BaseHTTPRequestHandler):
    """One request and its answer."""

    timeout = _SILENCE_S
    server: _Listener

    def do_GET(self) -> None:
        self._send(has_body=True)

    def do_HEAD(self) -> None:
        self._send(has_body=False)

    def version_string(self) -> str:
        return "psrt"

    def log_message(self, format: str, *args: Any) -> None:
        log.debug("%s " + format, self.client_address[0], *args)

    def _send(self, has_body: bool) -> None:
        page = self._page()
        self.send_response(page.status)
        self.send_header("Content-Type", page.content_type)
        self.send_header("Content-Length", str(len(page.body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if has_body:
            self.wfile.write(page.body)

    def _page(self) -> HttpPage:
        path = self.path.partition("?")[0]
        make = self.server.pages.get(path)
        if make is None:
            known = "".join(f"{each}\n" for each in self.server.pages)
            return HttpPage(known.encode(), status=200 if path == "/" else 404)
        try:
            return make(self.headers.get("Accept", ""))
        except Exception:
            log.exception("the page %s could not be made", path)
            return HttpPage(b"see the log of this process\n", status=500)


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ConfigError(
            f"metrics is {address!r}, which is not host:port.",
            hint="Write --metrics 127.0.0.1:9170; port 0 is any free one.",
        )
    return host.strip("[]"), int(port)
