"""The presence of a trainer's process at a pserver over gRPC, client side.

A unary call shows nothing of the time after it, so a process keeps one call of `Attend` open. It
ends when the process does, whatever the reason: the system closes its sockets. HTTP/2 keepalive
ends it on half-open links. A thread opens the call again when it ends while the process lives.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from typing import Any

from psrt.core.errors import AccessError, PsrtError
from psrt.core.threads import CrashReport, start_thread
from psrt.rpc.grpc_.grpc_carrier import (
    CHANNEL_OPTIONS,
    KEEPALIVE_OPTIONS,
    SERVICE,
    admitted,
    open_channel,
)
from psrt.rpc.grpc_library import grpc
from psrt.rpc.status import ERROR_METADATA
from psrt.rpc.wire import Message, encode

log = logging.getLogger("psrt.rpc")

_ADMIT_S = 10.0
AGAIN_S = 1.0
"""Pause before a call that has ended is opened again."""


class GrpcPresence:
    """One call of `Attend` to `where`, from construction to `close`, by the request `attend`."""

    def __init__(self, where: str, attend: Message) -> None:
        self._where = where
        self._request = b"".join(encode(attend))
        self._closed = threading.Event()
        self._channel = self._dial()
        start_thread(self._stay, f"presence {where}", CrashReport())

    def close(self) -> None:
        """End the call, and the thread with it."""
        self._closed.set()
        self._channel.close()

    def _stay(self) -> None:
        while not self._closed.is_set() and self._attended():
            self._closed.wait(AGAIN_S)
            self._channel.close()
            self._channel = self._dial()  # by the newest certificates
            if self._closed.is_set():
                self._channel.close()

    def _dial(self) -> Any:
        return open_channel(self._where, [*CHANNEL_OPTIONS, *KEEPALIVE_OPTIONS])

    def _attended(self) -> bool:
        """Wait for the end of one call; False if no other is worth while."""
        try:
            unary = self._channel.unary_unary(f"/{SERVICE}/Call")
            metadata = admitted(unary, self._where, _ADMIT_S)
            attend = self._channel.unary_stream(f"/{SERVICE}/Attend")
            replies: Iterable[bytes] = attend(self._request, metadata=metadata)
            for _ in replies:
                pass
        except grpc.RpcError as error:
            log.debug("presence at %s ended: %s", self._where, error)
            return not _is_refused(error)
        except PsrtError as error:
            log.debug("presence at %s is not possible: %s", self._where, error)
            return not isinstance(error, AccessError)
        except ValueError:  # the channel was closed before the call began
            return False
        return True


def _is_refused(error: grpc.RpcError) -> bool:
    """Return True if the pserver has no such call, or refuses it with a lasting error."""
    reported = any(key == ERROR_METADATA for key, _ in error.trailing_metadata() or ())
    temporary = error.code() is grpc.StatusCode.UNAVAILABLE
    return error.code() is grpc.StatusCode.UNIMPLEMENTED or (reported and not temporary)
