"""Errors of TLS as errors of psrt, and why a connection ended without one."""

from __future__ import annotations

import contextlib
import socket
import ssl
import time

from psrt.core.errors import AccessError, ConfigError
from psrt.rpc.hosts import split_endpoint
from psrt.rpc.tls.certificates import TlsFiles

_PROBE_S, _PAUSE_S = 1.0, 0.05
_PROBES = 3
_NOT_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "RECORD_LAYER_FAILURE")
_REFUSED_BY_ALERT = ("CERTIFICATE", "UNKNOWN_CA", "HANDSHAKE_FAILURE", "ACCESS_DENIED")
_OLDER = ("UNSUPPORTED_PROTOCOL", "TLSV1_ALERT_PROTOCOL_VERSION", "NO_PROTOCOLS_AVAILABLE")


def refusal(error: ssl.SSLError, where: str) -> AccessError | None:
    """The refusal that `error` of a connection to `where` stands for; None for a broken link."""
    reason = error.reason or ""
    if isinstance(error, ssl.SSLCertVerificationError):
        why = error.verify_message.rstrip(".")
        return _refused(f"The certificate of {where} was refused: {why}.")
    if reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
        return _refused(f"{where} has no certificate.")
    if reason in _NOT_TLS:
        return _refused(f"{where} does not encrypt: what it sent is not TLS.")
    if reason in _OLDER:
        return _refused(f"{where} does not speak TLS 1.3.")
    if "ALERT" in reason and any(word in reason for word in _REFUSED_BY_ALERT):
        return _refused(f"{where} refused the connection: {_words(reason)}.")
    return None


def why_refused(endpoint: str, tls: TlsFiles | None) -> AccessError | None:
    """Connect again to a gRPC port that closed a connection; returns the reason, if it is TLS.

    gRPC reports a refused certificate as a lost connection, and refuses one without an alert. A
    pserver that is killed in the same moment refuses nobody, so the reason has to last.
    """
    for _ in range(_PROBES - 1):
        if _reason(endpoint, tls) is None:
            return None
        time.sleep(_PAUSE_S)
    return _reason(endpoint, tls)


def _reason(endpoint: str, tls: TlsFiles | None) -> AccessError | None:
    try:
        host, port = split_endpoint(endpoint)
        with socket.create_connection((host, port), _PROBE_S) as sock:
            if sock.getsockname() == sock.getpeername():
                return None  # nobody listens, and TCP has connected the socket to itself
            return _asked_in_clear(sock, endpoint) if tls is None else _asked(sock, endpoint, tls)
    except (OSError, ConfigError):
        return None


def _asked(sock: socket.socket, endpoint: str, tls: TlsFiles) -> AccessError | None:
    context, host = tls.current().client, split_endpoint(endpoint)[0]
    try:
        with handshaken(context, sock, host) as encrypted:
            return None if _is_greeted(encrypted) else _unwelcome(endpoint, tls)
    except ssl.SSLError as error:
        return refusal(error, endpoint)


def handshaken(context: ssl.SSLContext, sock: socket.socket, host: str = "") -> ssl.SSLSocket:
    """The encrypted socket of a client after its handshake; raises `OSError`.

    `wrap_socket` by itself leaves the handshake out where the peer has reset the connection.
    """
    encrypted = context.wrap_socket(
        sock, server_hostname=host or None, do_handshake_on_connect=False
    )
    try:
        encrypted.do_handshake()
    except BaseException:
        encrypted.close()
        raise
    return encrypted


def _is_greeted(encrypted: ssl.SSLSocket) -> bool:
    """True if a gRPC server begins to speak, which it does once it has accepted a certificate."""
    try:
        return bool(encrypted.recv(1))
    except ConnectionResetError:
        return False


def _unwelcome(endpoint: str, tls: TlsFiles) -> AccessError:
    own = f"The certificate {tls.settings.cert}" if tls.settings.cert else "No certificate"
    return _refused(f"{endpoint} closed the connection after the handshake. Shown: {own}.")


def _asked_in_clear(sock: socket.socket, endpoint: str) -> AccessError | None:
    """The refusal of a caller without certificates, if `sock` leads to a port that encrypts."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with contextlib.suppress(ssl.SSLError), handshaken(context, sock):
        return _refused(f"{endpoint} accepts encrypted connections only.")
    return None


def _refused(message: str) -> AccessError:
    return AccessError(
        message,
        hint="Compare tls_ca, tls_cert and tls_key of both ends; the certificate names the host "
        "of the endpoint, and openssl x509 -text shows until when it is valid.",
    )


def _words(reason: str) -> str:
    """`TLSV13_ALERT_CERTIFICATE_REQUIRED` as `certificate required`."""
    return reason.rpartition("ALERT_")[2].replace("_", " ").lower()
