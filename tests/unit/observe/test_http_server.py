"""The HTTP server: known pages alone, few connections, short ones."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Generator, Iterator
from contextlib import closing
from queue import Queue

import pytest

from psrt.core.errors import ConfigError, JobError
from psrt.core.threads import CrashReport
from psrt.observe import http_server
from psrt.observe.http_server import HttpPage, HttpServer, HttpStream
from psrt.observe.observation import Observation


def fail(accept: str) -> HttpPage:
    raise RuntimeError("a secret detail")


@pytest.fixture
def server() -> Iterator[HttpServer]:
    pages = {
        "/a": lambda accept: HttpPage(b"hello " + accept.encode(), headers=[("X-Own", "1")]),
        "/fails": fail,
    }
    crashes = CrashReport()
    server = HttpServer("127.0.0.1:0", pages, crashes)
    yield server
    server.close()
    crashes.check()


def ask(server: HttpServer, path: str, method: str = "GET") -> tuple[int, bytes]:
    with closing(http.client.HTTPConnection(server.endpoint, timeout=30)) as connection:
        connection.request(method, path, headers={"Accept": "x"})
        answer = connection.getresponse()
        return answer.status, answer.read()


def headers_of(
    server: HttpServer, path: str, **headers: str
) -> tuple[int, http.client.HTTPMessage]:
    """Status and headers of an answer to a request with `headers`, `_` for `-` in their names."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    with closing(http.client.HTTPConnection(server.endpoint, timeout=30)) as connection:
        connection.request("GET", path, headers=sent)
        answer = connection.getresponse()
        return answer.status, answer.headers


def opened(server: HttpServer) -> socket.socket:
    host, _, port = server.endpoint.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=30)


def test_it_answers_get_and_head_of_known_pages(server: HttpServer) -> None:
    assert ask(server, "/a?query") == (200, b"hello x")
    assert ask(server, "/a", "HEAD") == (200, b"")
    assert ask(server, "/") == (200, b"/a\n/fails\n")
    assert ask(server, "/other")[0] == 404
    assert ask(server, "/a", "POST")[0] == 501


def test_a_page_has_its_own_headers(server: HttpServer) -> None:
    assert headers_of(server, "/a")[1]["X-Own"] == "1"


def test_a_browser_that_another_site_sends_is_refused(server: HttpServer) -> None:
    assert headers_of(server, "/a", Host="evil.example")[0] == 421
    assert headers_of(server, "/a", Host="127.0.0.1", Sec_Fetch_Site="cross-site")[0] == 403
    assert headers_of(server, "/a", Host="127.0.0.1", Sec_Fetch_Site="same-origin")[0] == 200


@pytest.fixture
def metrics() -> Iterator[HttpServer]:
    server = HttpServer("127.0.0.1:0", {"/metrics": lambda accept: HttpPage(b"x")}, CrashReport())
    yield server
    server.close()


def test_monitoring_may_call_by_any_name(metrics: HttpServer) -> None:
    assert headers_of(metrics, "/metrics", Host="pserver-0.of-a-service")[0] == 200


class Ticks:
    """A stream that goes on whenever a test lets it."""

    def __init__(self) -> None:
        self.next: Queue[bytes] = Queue()
        self.ended = threading.Event()

    def chunks(self) -> Generator[bytes]:
        try:
            while True:
                yield self.next.get(timeout=30)
        finally:
            self.ended.set()


@pytest.fixture
def ticks() -> Ticks:
    return Ticks()


@pytest.fixture
def streaming(ticks: Ticks) -> Iterator[HttpServer]:
    server = HttpServer(
        "127.0.0.1:0", {"/s": lambda accept: HttpStream(ticks.chunks)}, CrashReport()
    )
    yield server
    ticks.next.put(b"")
    server.close()


def test_a_stream_sends_chunks_as_they_come_and_ends_with_its_reader(
    streaming: HttpServer, ticks: Ticks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "MOST_STREAMS", 1)
    with opened(streaming) as reader:
        reader.sendall(b"GET /s HTTP/1.0\r\n\r\n")
        ticks.next.put(b"one")
        read = reader.makefile("rb")
        head = list(iter(read.readline, b"\r\n"))
        first = read.read(3)
        refused = headers_of(streaming, "/s")[0]
        ticks.next.put(b"two")
        second = read.read(3)
        read.close()
    ended = ticks.ended
    while not ended.wait(0.01):
        ticks.next.put(b"for nobody" * 10_000)

    assert b"Content-Type: text/event-stream\r\n" in head
    assert (first, second) == (b"one", b"two")
    assert refused == 503
    assert ended.is_set()


def broken() -> Generator[bytes]:
    yield b"one"
    raise RuntimeError("a secret detail")


def test_a_stream_that_fails_ends_alone() -> None:
    crashes = CrashReport()
    server = HttpServer("127.0.0.1:0", {"/s": lambda accept: HttpStream(broken)}, crashes)
    try:
        answers = [ask(server, "/s"), ask(server, "/s")]
    finally:
        server.close()

    assert answers == [(200, b"one"), (200, b"one")]
    assert crashes.error is None


def test_a_page_that_fails_does_not_show_why(server: HttpServer) -> None:
    status, body = ask(server, "/fails")

    assert status == 500
    assert b"secret" not in body


def test_connections_beyond_the_limit_are_closed_and_others_go_on(
    server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "MOST_CONNECTIONS", 1)
    with opened(server) as silent:
        with opened(server) as refused:
            assert refused.recv(1) == b""
        silent.sendall(b"GET /a HTTP/1.0\r\n\r\n")
        assert silent.recv(8) == b"HTTP/1.0"


def test_a_connection_that_takes_too_long_is_cut_off(
    server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "MOST_S", 0.0)
    with opened(server) as slow:
        assert slow.recv(1) == b""


def test_an_address_that_is_none_or_taken_is_named(server: HttpServer) -> None:
    for address in ("9170", "host:", "127.0.0.1:70000"):
        with pytest.raises(ConfigError, match="which is not host:port"):
            HttpServer(address, {}, CrashReport())
    with pytest.raises(JobError, match=f"could not be served on {server.endpoint}"):
        HttpServer(server.endpoint, {}, CrashReport())


def test_health_follows_crashes_and_readiness_is_set() -> None:
    crashes = CrashReport()
    pages = Observation("pserver", (), lambda page: None, dict, crashes)
    made = pages.pages()

    before = made["/healthz"]("").status, made["/readyz"]("").status
    pages.set_ready(True)
    crashes.report(RuntimeError("x"), "deadlines")

    assert before == (200, 503)
    assert made["/readyz"]("").status == 200
    assert made["/healthz"]("") == HttpPage(b"thread deadlines crashed\n", status=503)
