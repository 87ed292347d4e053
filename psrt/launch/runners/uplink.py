"""The connection of a runner to its launcher: its own standard streams, or TCP.

Over SSH and `srun` the launcher holds the standard streams of the runner. `mpirun` has no stream
for each rank, so there a runner dials its launcher, and both prove that they have the key of the
launch before anything else is sent.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import socket

from psrt.core.errors import JobError
from psrt.launch.outputs import LineSplitter
from psrt.launch.runners.messages import Message, message_in, packed

KEY_VARIABLE = "_PSRT_RUNNER_KEY"
"""The variable with the key of a launch, in hexadecimal digits; processes of the job lack it."""

_CHUNK_BYTES = 65536
_DIAL_TIMEOUT_S = 30.0


class Uplink:
    """Descriptors to read from and write to the launcher; `host` is the own address, if known."""

    def __init__(self, read_fd: int, write_fd: int, host: str = "") -> None:
        self.read_fd, self._write_fd, self.host = read_fd, write_fd, host
        self._lines = LineSplitter()

    def send(self, kind: str, **fields: object) -> None:
        """Send a message; waits while the launcher does not read. Raises `OSError`."""
        raw = memoryview(packed(kind, **fields))
        while raw:
            raw = raw[os.write(self._write_fd, raw) :]

    def receive(self) -> list[Message] | None:
        """Return messages once the launcher has sent some, or None at the end."""
        chunk = os.read(self.read_fd, _CHUNK_BYTES)
        return [message_in(line) for line in self._lines.feed(chunk)] if chunk else None


def own_streams() -> Uplink:
    """Return the uplink over standard input and output; prints of this process go to stderr."""
    read_fd, write_fd = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    return Uplink(read_fd, write_fd)


def dialed(endpoint: str, key: bytes, rank: int) -> Uplink:
    """Connect to a launcher as the runner of a rank; raises `JobError` if it lacks the key."""
    host, _, port = endpoint.rpartition(":")
    try:
        connection = socket.create_connection((host.strip("[]"), int(port)), _DIAL_TIMEOUT_S)
    except OSError as error:
        raise JobError(f"the launcher at {endpoint} cannot be reached: {error}") from error
    try:
        _prove(connection, endpoint, key, rank)
        own = str(connection.getsockname()[0])
        connection.settimeout(None)
        descriptor = connection.detach()
    finally:
        connection.close()
    return Uplink(descriptor, descriptor, own)


def _prove(connection: socket.socket, endpoint: str, key: bytes, rank: int) -> None:
    """Check that the launcher has the key, and show that this runner has it."""
    nonce = secrets.token_hex(16)
    connection.sendall(packed("dial", rank=rank, host=socket.gethostname(), nonce=nonce))
    answer = _read(connection)
    if not hmac.compare_digest(proof_of(key, "launcher", nonce), str(answer.get("proof"))):
        raise JobError(f"the process at {endpoint} is not the launcher of this job.")
    connection.sendall(packed("prove", proof=proof_of(key, "runner", str(answer["nonce"]))))
    _read(connection)  # its welcome


def proof_of(key: bytes, role: str, nonce: str) -> str:
    """Return the proof for a nonce that `role`, "launcher" or "runner", has the key."""
    return hmac.new(key, f"{role} {nonce}".encode(), hashlib.sha256).hexdigest()


def _read(connection: socket.socket) -> Message:
    """Read one message, and nothing beyond it, which is for the uplink."""
    line = b""
    while not line.endswith(b"\n"):
        byte = connection.recv(1)
        if not byte:
            raise JobError("the launcher closed the connection: the key of the launch is not its.")
        line += byte
    return message_in(line)
