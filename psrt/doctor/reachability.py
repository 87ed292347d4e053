"""Reasons for which a pserver does not answer: name, port, encryption, token, another server there.

The steps of a connection are tried one after another, and the first that fails is named.
"""

from __future__ import annotations

import socket

from psrt.core.errors import ErrorCode
from psrt.doctor.findings import Finding
from psrt.rpc.access import identity
from psrt.rpc.hosts import split_endpoint
from psrt.rpc.tls import why_refused
from psrt.status import Unreachable

_PROBE_S = 2.0
_HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""The first bytes of a client of gRPC: the preface of HTTP/2, and empty settings."""
_SETTINGS = 4
_READY_LINE = "Compare the endpoint with the line 'psrt pserver ready on' of the pserver."


def check_reachability(facts: Unreachable) -> Finding:
    """The reason why a pserver has not answered."""
    checks = (_name, _port, _encryption, _token, _protocol)
    found = (finding for check in checks if (finding := check(facts)) is not None)
    remedy = f"See the log of the pserver. {_READY_LINE}"
    return next(found, Finding("no-answer", facts.endpoint, facts.reason, remedy))


def check_addresses(endpoint: str) -> list[Finding]:
    """A name with several addresses of one kind, of which only some lead to a server."""
    try:
        addresses = _addresses(endpoint)
    except OSError:
        return []
    if len(addresses) < 2:
        return []
    alive = {each[0] for each in addresses if _is_open(each)}
    kinds = {":" in each for each in alive}
    dead = {each[0] for each in addresses if (":" in each[0]) in kinds} - alive
    if not dead:
        return []
    answers, silent = ", ".join(sorted(alive)), ", ".join(sorted(dead))
    host = split_endpoint(endpoint)[0]
    return [
        Finding(
            "dns-differs",
            endpoint,
            f"the name {host} has several addresses: {answers} answers, {silent} does not.",
            "Correct /etc/hosts or DNS on this host, so that the name has one address.",
        )
    ]


def _name(facts: Unreachable) -> Finding | None:
    try:
        _addresses(facts.endpoint)
    except OSError as error:
        host = split_endpoint(facts.endpoint)[0]
        what = f"the name {host} has no address: {error.strerror}."
        return Finding("dns", facts.endpoint, what, "Correct the endpoint, /etc/hosts or DNS.")
    return None


def _port(facts: Unreachable) -> Finding | None:
    host, port = split_endpoint(facts.endpoint)
    try:
        socket.create_connection((host, port), _PROBE_S).close()
    except ConnectionRefusedError:
        what = f"nothing listens on port {port} of {host}."
        return Finding("port-closed", facts.endpoint, what, "Start the pserver, or see its log.")
    except OSError as error:
        what = f"{host} does not answer on port {port}: {error}."
        remedy = "Check that the host is up, and that no firewall drops what is sent to the port."
        return Finding("no-route", facts.endpoint, what, remedy)
    return None


def _encryption(facts: Unreachable) -> Finding | None:
    refused = why_refused(facts.endpoint, identity().tls)
    if refused is None:
        return None
    kind = "certificate" if "certificate" in refused.message else "encryption"
    return Finding(kind, facts.endpoint, refused.message, refused.hint)


def _token(facts: Unreachable) -> Finding | None:
    if facts.code != ErrorCode.ACCESS_DENIED.name:
        return None
    remedy = "Name a file with a token of this pserver (--token-file); psrt token list shows them."
    return Finding("token", facts.endpoint, facts.reason, remedy)


def _protocol(facts: Unreachable) -> Finding | None:
    """Another server than a pserver, or one that accepts a connection and does nothing then."""
    if facts.code == ErrorCode.WIRE_UNKNOWN_METHOD.name:
        return Finding("another-server", facts.endpoint, facts.reason, _READY_LINE)
    if identity().tls is not None:
        return None
    try:
        reply = _first_bytes(facts.endpoint)
    except TimeoutError:
        what = "it accepts connections, and does not answer: its process hangs or was stopped."
        remedy = "Run psrt doctor --dump on its host, or kill -QUIT its process, to see its stacks."
        return Finding("hung", facts.endpoint, what, remedy)
    except OSError:
        return None
    if len(reply) > 3 and reply[3] == _SETTINGS:
        return None
    what = "another server than a pserver listens there, or it is a data port of one."
    return Finding("another-server", facts.endpoint, what, _READY_LINE)


def _first_bytes(endpoint: str) -> bytes:
    """The first bytes that a server sends to a client of gRPC; raises `OSError`."""
    with socket.create_connection(split_endpoint(endpoint), _PROBE_S) as sock:
        sock.sendall(_HTTP2)
        return sock.recv(9)


def _addresses(endpoint: str) -> set[tuple[str, int]]:
    """Addresses and port of an endpoint; raises `OSError`."""
    host, port = split_endpoint(endpoint)
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return {(str(address[0]), port) for *_, address in found}


def _is_open(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, _PROBE_S).close()
    except OSError:
        return False
    return True
