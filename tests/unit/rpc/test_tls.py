"""Encrypted connections: who is refused, by both carriers, and files that change."""

from __future__ import annotations

import dataclasses
import logging
import os
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from psrt.core.errors import AccessError, ConfigError, PsrtError, UnavailableError
from psrt.rpc import pb
from psrt.rpc.dialing import Connection
from psrt.rpc.grpc_ import GrpcConnection
from psrt.rpc.hosts import split_endpoint
from psrt.rpc.methods import Method
from psrt.rpc.server import Server
from psrt.rpc.serving import Peer
from psrt.rpc.stream import connect_tcp
from psrt.rpc.tls import TlsFiles, TlsSettings, connect_encrypted, why_refused
from psrt.rpc.wire import Message
from tests.support.carriers import eventually
from tests.support.certificates import Authority, identified

WAIT_S = 10.0
LONG_AGO = datetime(2020, 1, 1)


def echo(request: Message, peer: Peer) -> Message:
    return Message(pb.Header(), list(request.tensors))


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "own")


@pytest.fixture
def stranger(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "other")


@pytest.fixture
def server(authority: Authority) -> Iterator[Server]:
    with serving(authority.issue("pserver")) as built:
        yield built


@contextmanager
def serving(settings: TlsSettings) -> Iterator[Server]:
    """A server with certificates inside a block."""
    server = Server(echo, tls=TlsFiles(settings))
    server.start()
    try:
        yield server
    finally:
        server.stop(0.0)


CONNECT: dict[str, Callable[[Server], Connection]] = {
    "stream": lambda server: connect_tcp(server.data_endpoints[0], WAIT_S),
    "grpc": lambda server: GrpcConnection(server.endpoint),
}


def ask(server: Server, carrier: str) -> list[int]:
    """Send 0, 1, 2 there and back."""
    connection = CONNECT[carrier](server)
    try:
        request = Message(pb.Header(protocol=1, method=Method.PULL), [np.arange(3)])
        return list(connection.call(request, WAIT_S).tensors[0].tolist())
    finally:
        connection.close()


carriers = pytest.mark.parametrize("carrier", CONNECT)


@carriers
def test_holders_of_certificates_of_one_authority_are_admitted(
    server: Server, authority: Authority, carrier: str
) -> None:
    with identified(authority.issue("trainer")):
        assert ask(server, carrier) == [0, 1, 2]


# --- who is refused -------------------------------------------------------------------------------


def nobody(own: Authority, other: Authority) -> TlsSettings | None:
    return None


def no_certificate(own: Authority, other: Authority) -> TlsSettings:
    return TlsSettings(ca=str(own.file))


def of_another_authority(own: Authority, other: Authority) -> TlsSettings:
    return other.issue("trainer", ca=own.file)


def expired(own: Authority, other: Authority) -> TlsSettings:
    return own.issue("trainer", until=LONG_AGO)


def trusts_another(own: Authority, other: Authority) -> TlsSettings:
    return own.issue("trainer", ca=other.file)


@carriers
@pytest.mark.parametrize("caller", [no_certificate, of_another_authority, expired, trusts_another])
def test_others_are_refused_at_once(
    server: Server,
    authority: Authority,
    stranger: Authority,
    carrier: str,
    caller: Callable[[Authority, Authority], TlsSettings],
) -> None:
    with identified(caller(authority, stranger)), pytest.raises(AccessError) as caught:
        ask(server, carrier)

    assert "tls_ca" in caught.value.hint


def test_a_caller_without_encryption_is_refused_by_name(server: Server) -> None:
    with pytest.raises(AccessError, match="accepts encrypted connections only"):
        ask(server, "grpc")
    with pytest.raises(UnavailableError):
        ask(server, "stream")


@carriers
def test_a_pserver_without_encryption_is_refused(authority: Authority, carrier: str) -> None:
    plain = Server(echo)
    plain.start()
    try:
        with identified(authority.issue("trainer")), pytest.raises(PsrtError):
            ask(plain, carrier)
    finally:
        plain.stop(0.0)


@carriers
def test_a_certificate_of_another_host_is_refused(authority: Authority, carrier: str) -> None:
    elsewhere = authority.issue("elsewhere", "10.1.2.3")
    mismatch = pytest.raises(AccessError, match="IP address mismatch")
    with serving(elsewhere) as server, identified(authority.issue("trainer")), mismatch:
        ask(server, carrier)


def test_refusals_are_recorded_with_the_address(
    server: Server, stranger: Authority, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "psrt.audit")
    with identified(of_another_authority(authority, stranger)), pytest.raises(AccessError):
        ask(server, "stream")

    eventually(lambda: "refused stream-tcp 127.0.0.1:" in caplog.text, "the line of the refusal")
    assert "unable to get local issuer certificate" in caplog.text


def test_data_ports_refuse_older_versions_of_tls(server: Server, authority: Authority) -> None:
    older = TlsFiles(authority.issue("trainer")).current().client
    older.minimum_version = older.maximum_version = ssl.TLSVersion.TLSv1_2
    address = split_endpoint(server.data_endpoints[0])

    with socket.create_connection(address, WAIT_S) as sock, pytest.raises(ssl.SSLError):
        older.wrap_socket(sock, server_hostname=address[0])


def test_callers_without_certificates_are_admitted_where_the_pserver_says_so(
    authority: Authority,
) -> None:
    settings = dataclasses.replace(authority.issue("pserver"), any_caller=True)
    with serving(settings) as server, identified(TlsSettings(ca=str(authority.file))):
        assert ask(server, "grpc") == ask(server, "stream") == [0, 1, 2]


@pytest.mark.parametrize("encrypts", [False, True])
def test_a_peer_that_resets_connections_refuses_nobody(
    authority: Authority, encrypts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls = TlsFiles(authority.issue("trainer")) if encrypts else None
    # Python leaves out the handshake of a socket that is not connected any more.
    monkeypatch.setattr(socket, "create_connection", lambda *given: socket.socket())

    assert why_refused("127.0.0.1:1", tls) is None


def test_a_socket_that_tcp_has_connected_to_itself_refuses_nobody() -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
        sock.connect(sock.getsockname())

    assert why_refused(f"127.0.0.1:{port}", None) is None


# --- the socket -----------------------------------------------------------------------------------


def test_a_call_ends_at_its_deadline(authority: Authority) -> None:
    settings = authority.issue("both")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        with socket.create_connection(address) as sock, pytest.raises(UnavailableError):
            connect_encrypted(sock, TlsFiles(settings), f"127.0.0.1:{address[1]}", 0.05)


@pytest.mark.parametrize("size", [0, 1, 16 * 1024 - 1, 16 * 1024, 100_000, 3_000_001])
def test_frames_of_any_size_pass(server: Server, authority: Authority, size: int) -> None:
    values = np.arange(size, dtype=np.uint8)
    with identified(authority.issue("trainer")):
        connection = connect_tcp(server.data_endpoints[0], WAIT_S)
        for _ in range(2):
            request = Message(pb.Header(protocol=1, method=Method.PULL), [values, values[:5]])
            whole, part = connection.call(request, WAIT_S).tensors
            assert np.array_equal(whole, values)
            assert np.array_equal(part, values[:5])
        connection.close()


# --- files ----------------------------------------------------------------------------------------


@carriers
def test_new_certificates_are_used_without_a_restart(
    authority: Authority, carrier: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("psrt.rpc.tls.certificates._LOOK_EVERY_S", 0.0)
    settings = authority.issue("pserver", until=LONG_AGO)
    with serving(settings) as server, identified(authority.issue("trainer")):
        with pytest.raises(AccessError, match="certificate has expired"):
            ask(server, carrier)
        authority.issue("pserver")

        assert ask(server, carrier) == [0, 1, 2]


def test_files_that_cannot_be_used_leave_those_before(
    authority: Authority, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("psrt.rpc.tls.certificates._LOOK_EVERY_S", 0.0)
    caplog.set_level(logging.WARNING, "psrt.audit")
    settings = authority.issue("pserver")
    files = TlsFiles(settings)
    before = files.current()
    Path(settings.cert).write_text("not a certificate")

    assert files.current() is before
    assert "the certificates stay as they are" in caplog.text


def test_a_key_that_everybody_can_read_is_refused(authority: Authority) -> None:
    settings = authority.issue("pserver")
    os.chmod(settings.key, 0o644)

    with pytest.raises(ConfigError, match="everybody can read or write this key"):
        TlsFiles(settings)


def test_a_key_of_another_certificate_is_refused(authority: Authority) -> None:
    settings = dataclasses.replace(authority.issue("one"), key=authority.issue("two").key)

    with pytest.raises(ConfigError, match="cannot be used"):
        TlsFiles(settings)


@pytest.mark.parametrize(
    ("settings", "is_pserver", "missing"),
    [
        (TlsSettings(cert="c", key="k"), False, "tls_ca"),
        (TlsSettings(cert="c", ca="a"), False, "tls_key"),
        (TlsSettings(ca="a"), True, "tls_cert and tls_key"),
    ],
)
def test_settings_that_lack_a_file_name_it(
    settings: TlsSettings, is_pserver: bool, missing: str
) -> None:
    with pytest.raises(ConfigError, match=f"^{missing} must be set"):
        settings.check(is_pserver=is_pserver)


def test_keys_do_not_appear_in_texts(authority: Authority) -> None:
    assert "PRIVATE" not in repr(TlsFiles(authority.issue("pserver")).current())


# --- who may listen without ----------------------------------------------------------------------


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "host-a"])
def test_listening_beyond_loopback_needs_certificates(host: str, authority: Authority) -> None:
    with pytest.raises(ConfigError, match="without encryption was refused"):
        Server(echo, host)
    Server(echo, host, insecure=True)
    Server(echo, host, tls=TlsFiles(authority.issue("pserver")))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost"])
def test_this_host_needs_none(host: str) -> None:
    Server(echo, host)
