"""A launcher's port for runners that dial it, which prove that they have the key of the launch.

Anyone can reach the port. A caller is let in when its proof fits; until then it may send
`_LIMIT_BYTES`, and has `_PROVE_S`.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import select
import socket

from psrt.core.clock import Clock
from psrt.launch.outputs import LineSplitter
from psrt.launch.runners.messages import Message, message_in, packed
from psrt.launch.runners.uplink import proof_of

_PROVE_S = 10.0
_SEND_S = 30.0
_LIMIT_BYTES = 4096
_CALLERS = 256
_CHUNK_BYTES = 65536


class SocketLink:
    """A connection over TCP to a runner that has proved itself."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        # Beats are sent all the time: a host that acknowledges none of them is lost.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(_SEND_S * 1000))

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, raw: bytes) -> None:
        rest = memoryview(raw)
        while rest:
            _, writable, _ = select.select([], [self._socket], [], _SEND_S)
            if not writable:
                raise TimeoutError(f"it has read nothing for {_SEND_S:g} s")
            rest = rest[self._socket.send(rest) :]

    def receive(self) -> bytes | None:
        try:
            return self._socket.recv(_CHUNK_BYTES) or None
        except BlockingIOError:
            return b""

    def end(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._socket.close()

    def last_words(self) -> str:
        return ""


class Caller:
    """A connection whose proof is outstanding; `rank` and `host` are what it claims to be."""

    def __init__(self, connection: socket.socket, key: bytes, now: float) -> None:
        connection.setblocking(False)
        self.connection, self.deadline = connection, now + _PROVE_S
        self.rank, self.host = -1, ""
        self._key, self._nonce = key, secrets.token_hex(16)
        self._lines = LineSplitter()

    def has_proved(self) -> bool:
        """Read what has arrived; raises `OSError`, `ValueError` or `KeyError` for a stranger."""
        try:
            chunk = self.connection.recv(_LIMIT_BYTES)
        except BlockingIOError:
            return False
        lines = self._lines.feed(chunk)
        if not chunk or len(self._lines.rest) > _LIMIT_BYTES:
            raise ValueError("no runner")
        for line in lines:
            if self._handle(message_in(line)):
                self.connection.send(packed("welcome"))
                return True  # a runner sends no more before its welcome
        return False

    def _handle(self, message: Message) -> bool:
        if message["kind"] == "dial":
            self.rank, self.host = int(message["rank"]), str(message["host"])
            proof = proof_of(self._key, "launcher", str(message["nonce"]))
            self.connection.send(packed("answer", nonce=self._nonce, proof=proof))
            return False
        expected = proof_of(self._key, "runner", self._nonce)
        if self.rank < 0 or not hmac.compare_digest(expected, str(message["proof"])):
            raise ValueError("wrong proof")
        return True


class RunnerPort:
    """A port at `address`; `accept` returns runners that have proved that they have `key`."""

    def __init__(self, address: str, key: bytes, clock: Clock) -> None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._listener = socket.create_server((address, 0), family=family, backlog=_CALLERS)
        self._listener.setblocking(False)
        self._key, self._clock = key, clock
        self._callers: list[Caller] = []

    @property
    def endpoint(self) -> str:
        host, port = self._listener.getsockname()[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def accept(self) -> list[Caller]:
        """Return the runners that have proved themselves since the last call."""
        now = self._clock.now()
        with contextlib.suppress(BlockingIOError):
            while len(self._callers) < _CALLERS:
                self._callers.append(Caller(self._listener.accept()[0], self._key, now))
        return [caller for caller in list(self._callers) if self._is_in(caller, now)]

    def close(self) -> None:
        self._listener.close()
        for caller in self._callers:
            caller.connection.close()

    def _is_in(self, caller: Caller, now: float) -> bool:
        try:
            has_proved = caller.has_proved()
        except (OSError, ValueError, KeyError):
            self._drop(caller)
            return False
        if has_proved:
            self._callers.remove(caller)
        elif now >= caller.deadline:
            self._drop(caller)
        return has_proved

    def _drop(self, caller: Caller) -> None:
        self._callers.remove(caller)
        caller.connection.close()
