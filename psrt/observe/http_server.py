"""A small HTTP server: few connections, short timeouts, GET and HEAD of known pages alone.

It reads no body and holds no state, so a client can only take a connection for some seconds, or one
of few streams. Pages for browsers are answered under names of this host alone (`host_names`).
"""

from __future__ import annotations

import contextlib
import http.server
import logging
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from psrt.core.errors import ConfigError, ErrorCode, JobError
from psrt.core.threads import CrashReport, start_thread
from psrt.observe.host_names import HostNames

log = logging.getLogger("psrt.observe")

MOST_CONNECTIONS = 16
"""Connections at a time; further ones are closed at once."""
MOST_S = 10.0
"""Seconds of one connection; then it is cut off."""
MOST_STREAMS = 8
"""Connections at a time that get a stream; they are cut off after `MOST_STREAM_S` seconds."""
MOST_STREAM_S = 3600.0
FOR_MACHINES = frozenset({"/metrics", "/healthz", "/readyz"})
"""Pages that are answered under any name: monitoring calls a process by names that it cannot know.
They are of no use to a browser."""
_SILENCE_S = 5.0
_FULL_PAUSE_S = 0.02  # a crowd that is turned away takes little time from the process
_LOOK_EVERY_S = 0.5


@dataclass(frozen=True)
class HttpPage:
    """One answer."""

    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    status: int = 200
    headers: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class HttpStream:
    """An answer without an end: `chunks` waits for each, and is closed when the reader leaves."""

    chunks: Callable[[], Generator[bytes]]
    content_type: str = "text/event-stream"
    headers: Sequence[tuple[str, str]] = ()


MakePage: TypeAlias = Callable[[str], HttpPage | HttpStream]
"""Makes a page from the header Accept of the request."""


class HttpServer:
    """Serves `pages` by path at `host:port` from construction to `close`; port 0 is any free one.

    Browsers may call it by `names` besides those of this host. `subject` and `flag` are what errors
    name. Raises `ConfigError` if `address` is not host:port, and `JobError` if it cannot be
    listened on.
    """

    def __init__(
        self,
        address: str,
        pages: Mapping[str, MakePage],
        crashes: CrashReport,
        names: Sequence[str] = (),
        subject: str = "metrics",
        flag: str = "--metrics",
    ) -> None:
        host, port = _split(address)
        try:
            self._server = _Listener((host, port), pages, crashes, HostNames((host, *names)))
        except OSError as error:
            raise JobError(
                f"{subject} could not be served on {address}: {error}.",
                code=ErrorCode.STARTUP_FAILED,
                hint=f"Choose another address for {flag}; port 0 is any free one.",
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
        self,
        where: tuple[str, int],
        pages: Mapping[str, MakePage],
        crashes: CrashReport,
        names: HostNames,
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in where[0] else socket.AF_INET
        self.pages, self.names, self._crashes = pages, names, crashes
        self._lock = threading.Lock()
        self._open: dict[socket.socket, float] = {}  # when each connection is cut off
        self._streams: set[socket.socket] = set()
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
                self._open[request] = time.monotonic() + MOST_S
        if not is_taken:
            self.shutdown_request(request)
            time.sleep(_FULL_PAUSE_S)
            return
        answer = partial(self._answer, request, client_address)
        start_thread(answer, "metrics answer", self._crashes)

    def service_actions(self) -> None:
        """Cut off connections that take too long."""
        self.cut_off(time.monotonic())

    def cut_off(self, now_s: float) -> None:
        with self._lock:
            late = [each for each, ends_s in self._open.items() if now_s > ends_s]
        for each in late:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def may_stream(self, request: socket.socket) -> bool:
        """Give a connection the time of a stream, unless there are too many."""
        with self._lock:
            if len(self._streams) >= MOST_STREAMS or request not in self._open:
                return False
            self._streams.add(request)
            self._open[request] = time.monotonic() + MOST_STREAM_S
            return True

    def _answer(self, request: socket.socket, client_address: Any) -> None:
        try:
            self.finish_request(request, client_address)
        except OSError as error:
            log.debug("a reader of metrics left: %s", error)
        finally:
            with self._lock:
                self._open.pop(request, None)
                self._streams.discard(request)
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
        if isinstance(page, HttpStream) and has_body:
            if self.server.may_stream(self.connection):
                self._stream(page)
                return
            page = _TOO_MANY
        body = page.body if isinstance(page, HttpPage) else b""
        self.send_response(page.status if isinstance(page, HttpPage) else 200)
        self.send_header("Content-Length", str(len(body)))
        self._end_headers(page)
        if has_body:
            self.wfile.write(body)

    def _stream(self, page: HttpStream) -> None:
        """Send chunks until the reader leaves, or takes none for some seconds.

        An error of what makes them ends this stream alone.
        """
        self.send_response(200)
        self._end_headers(page)
        with contextlib.closing(page.chunks()) as chunks:
            try:
                for chunk in chunks:
                    self.wfile.write(chunk)
            except OSError:
                raise
            except Exception:
                log.exception("the stream %s could not go on", self.path.partition("?")[0])

    def _end_headers(self, page: HttpPage | HttpStream) -> None:
        self.send_header("Content-Type", page.content_type)
        self.send_header("X-Content-Type-Options", "nosniff")
        for name, value in page.headers:
            self.send_header(name, value)
        self.end_headers()

    def _page(self) -> HttpPage | HttpStream:
        path = self.path.partition("?")[0]
        if path not in FOR_MACHINES and (refused := self._refused()) is not None:
            return refused
        make = self.server.pages.get(path)
        if make is None:
            known = "".join(f"{each}\n" for each in self.server.pages)
            return HttpPage(known.encode(), status=200 if path == "/" else 404)
        try:
            return make(self.headers.get("Accept", ""))
        except Exception:
            log.exception("the page %s could not be made", path)
            return HttpPage(b"see the log of this process\n", status=500)

    def _refused(self) -> HttpPage | None:
        """The answer to a browser that another site sends here; None for other callers."""
        host = self.headers.get("Host", "")
        if not self.server.names.has(host):
            log.warning("a browser asked for %r, which is no name of this host", host[:100])
            return _OTHER_NAME
        if self.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none"):
            return _OTHER_SITE
        return None


_OTHER_NAME = HttpPage(
    b"This name is not one of this host. Use its IP address, or add the name to metrics_names.\n",
    status=421,
)
_OTHER_SITE = HttpPage(b"Another site may not ask for this.\n", status=403)
_TOO_MANY = HttpPage(b"Too many pages are open.\n", status=503)


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ConfigError(
            f"metrics is {address!r}, which is not host:port.",
            hint="Write --metrics 127.0.0.1:9170; port 0 is any free one.",
        )
    return host.strip("[]"), int(port)
