"""Errors on the wire: `PsrtError` ⇄ `pb.Error` ⇄ gRPC status.

A reply that reports an error keeps the remote message whole; the receiving side prefixes the call
and the endpoint. Over gRPC the `pb.Error` travels in trailing metadata with an ordinary status, so
that any gRPC client understands the failure and a psrt client loses nothing.
"""

from __future__ import annotations

from psrt.core.errors import (
    CATALOGUE,
    DeadlineError,
    ErrorCode,
    InternalError,
    PsrtError,
    UnavailableError,
    WireError,
    from_code,
)
from psrt.rpc import pb
from psrt.rpc.grpc_library import grpc
from psrt.rpc.wire import no_memory

ERROR_METADATA = "psrt-error-bin"

# gRPC refuses metadata above 8 KiB, and nobody reads a longer text.
_MAX_TEXT = 2000


def to_wire(error: BaseException) -> pb.Error:
    """Return the error for the peer; an exception of other code becomes INTERNAL, a `MemoryError`
    WIRE_TOO_LARGE."""
    if isinstance(error, MemoryError):
        error = no_memory("the reply to the call")
    if not isinstance(error, PsrtError):
        error = InternalError(
            f"The pserver failed with {type(error).__name__}: {error}.",
            hint="This is a defect in psrt; the traceback is in the pserver's log.",
        )
    text = error.message
    if error.__cause__ is not None:
        text = f"{text} Cause: {type(error.__cause__).__name__}: {error.__cause__}"
    return pb.Error(code=int(error.code), message=text[:_MAX_TEXT], hint=error.hint[:_MAX_TEXT])


def from_wire(error: pb.Error, what: str) -> PsrtError:
    """Return the error to raise here; `what` names the call and the endpoint that refused it."""
    return from_code(error.code, f"{what} failed: {error.message}", error.hint)


def grpc_status(error: pb.Error) -> grpc.StatusCode:
    try:
        spec = CATALOGUE[ErrorCode(error.code)]
    except ValueError:
        return grpc.StatusCode.UNKNOWN
    return grpc.StatusCode[spec.grpc_status]


def from_grpc(error: grpc.RpcError, endpoint: str) -> PsrtError:
    """Return the error for a failure of gRPC itself, which carries no `pb.Error`."""
    code, details = error.code(), error.details()
    match code:
        case grpc.StatusCode.UNAVAILABLE | grpc.StatusCode.CANCELLED:
            return UnavailableError(f"The pserver {endpoint} cannot be reached: {details}.")
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return DeadlineError(f"The pserver {endpoint} did not reply in time.")
        case grpc.StatusCode.RESOURCE_EXHAUSTED:
            text = f"gRPC refused a message for {endpoint}: {details}."
            return WireError(text, code=ErrorCode.WIRE_TOO_LARGE)
        case grpc.StatusCode.UNIMPLEMENTED:
            return WireError(
                f"{endpoint} is a gRPC server, but no psrt pserver of this release: {details}.",
                code=ErrorCode.WIRE_UNKNOWN_METHOD,
                hint="Compare the endpoint with the line 'psrt pserver ready on' of the pserver.",
            )
        case _:
            return InternalError(f"gRPC call to {endpoint} ended with {code.name}: {details}.")
