"""The calls of a socket that the stream carrier makes, over TLS.

OpenSSL encrypts from and decrypts into the memory of the caller, record by record of 16 KiB,
without the interpreter's lock. A short frame is joined, so that it is one record. Python's TLS has
timeouts of its own in place of the kernel's SO_RCVTIMEO, which this translates.
"""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Sequence
from typing import Any

from psrt.core.errors import UnavailableError
from psrt.rpc.hosts import split_endpoint
from psrt.rpc.tls.certificates import TlsFiles
from psrt.rpc.tls.refusals import handshaken, refusal

_RECORD_BYTES = 16 * 1024
_TIMEVAL = struct.Struct("ll")
_TIMEOUTS = (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO)


class EncryptedSocket:
    """A connected socket to `where`; takes no ancillary data. The handshake is the first call's.

    Raises `AccessError` when an end refuses the other, `BlockingIOError` after the timeout, and
    `ConnectionError` for a broken link. After a refusal received bytes are discarded raw.
    """

    def __init__(self, encrypted: ssl.SSLSocket, where: str) -> None:
        self._socket, self._where = encrypted, where
        self._is_refused = False
        self.family = encrypted.family

    def sendmsg(self, parts: Sequence[Any], ancillary: Sequence[Any] = ()) -> int:
        """Send some of the first `parts`; returns how many bytes."""
        first = parts[0] if len(parts[0]) >= _RECORD_BYTES else _record_of(parts)
        try:
            return self._socket.send(first)
        except OSError as error:
            raise self._translated(error) from error

    def recvmsg_into(
        self, gather: Sequence[Any], ancillary_bytes: int = 0, flags: int = 0
    ) -> tuple[int, list[Any], int, Any]:
        """Receive into the first of `gather`, with MSG_WAITALL until it is full; 0 = closed."""
        view = memoryview(gather[0])
        got = self._receive(view)
        while flags & socket.MSG_WAITALL and 0 < got < len(view):
            try:
                more = self._receive(view[got:])
            except BlockingIOError:
                break
            if not more:
                break
            got += more
        return got, [], 0, None

    def setsockopt(self, level: int, option: int, value: Any) -> None:
        """Set an option of the socket; a timeout of the kernel becomes one of TLS."""
        if level == socket.SOL_SOCKET and option in _TIMEOUTS:
            seconds, microseconds = _TIMEVAL.unpack(value)
            self._socket.settimeout(seconds + microseconds / 1e6)
        else:
            self._socket.setsockopt(level, option, value)

    def setblocking(self, flag: bool) -> None:
        self._socket.setblocking(flag)

    def fileno(self) -> int:
        return self._socket.fileno()

    def shutdown(self, how: int) -> None:
        """Shut down the connection below TLS: another thread may be in a call."""
        socket.socket.shutdown(self._socket, how)

    def close(self) -> None:
        self._socket.close()

    def _receive(self, view: memoryview) -> int:
        try:
            if self._is_refused:
                return socket.socket.recv_into(self._socket, view)
            return self._socket.recv_into(view)
        except OSError as error:
            raise self._translated(error) from error

    def _translated(self, error: OSError) -> Exception:
        if isinstance(error, TimeoutError):
            return BlockingIOError("timed out")
        if not isinstance(error, ssl.SSLError):
            return error
        self._is_refused = True
        return refusal(error, self._where) or ConnectionResetError(f"TLS: {error.reason or error}")


def accept_encrypted(sock: socket.socket, tls: TlsFiles, peer: str) -> EncryptedSocket:
    """The server's end of a new connection; its handshake happens with the first call."""
    context = tls.current().server
    assert context is not None
    return EncryptedSocket(
        context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False), peer
    )


def connect_encrypted(
    sock: socket.socket, tls: TlsFiles, endpoint: str, timeout_s: float
) -> EncryptedSocket:
    """The client's end of a connection, after the handshake; `endpoint` is in the certificate.

    Raises `AccessError` if an end refuses the other, and `UnavailableError`.
    """
    sock.settimeout(timeout_s)
    host = split_endpoint(endpoint)[0]
    try:
        encrypted = handshaken(tls.current().client, sock, host)
    except OSError as error:
        sock.close()
        refused = refusal(error, endpoint) if isinstance(error, ssl.SSLError) else None
        raise refused or UnavailableError(f"Cannot connect to {endpoint}: {error}.") from error
    return EncryptedSocket(encrypted, endpoint)


def _record_of(parts: Sequence[Any]) -> bytes:
    """The first bytes of `parts`, one record at most."""
    taken, left = [], _RECORD_BYTES
    for part in parts:
        taken.append(part[:left])
        left -= len(taken[-1])
        if not left:
            break
    return b"".join(taken)
