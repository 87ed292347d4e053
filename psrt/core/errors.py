"""The error catalogue: every failure psrt reports has one code.

    PsrtError
    ├── ConfigError       a setting, flag, TOML key or variable is wrong
    ├── ProgramError      a program or layer call is not legal
    ├── DataError         a file cannot be read or parsed (names file, line, slot)
    ├── WireError         bytes from the network do not follow docs/reference/wire-format.md
    ├── AccessError       a process has no token, or one that does not allow a call
    ├── TableError        a table is missing, conflicts, or a shape does not fit
    ├── UnavailableError  the other side cannot be reached (worth a retry)
    ├── DeadlineError     a wait ended; the message names the awaited processes
    ├── JobError          a job or one of its processes failed
    ├── StorageError      a file of a cut is damaged or missing, or its storage fails
    └── InternalError     a defect in psrt

A message consists of sentences: the failure, the objects concerned, and what psrt did; `hint` is
advice for the reader. Codes map to gRPC statuses, exit codes and sections of
docs/reference/errors.md; a test keeps the three complete. Never reuse the number of a removed code.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import ClassVar


class ErrorCode(enum.IntEnum):
    """Codes of errors; their numbers travel on the wire (`Error.code`), 0 means no error."""

    CONFIG_INVALID = 1
    CONFIG_UNKNOWN_KEY = 2
    PROGRAM_INVALID = 10
    SHAPE_MISMATCH = 11
    NOT_FINITE = 12
    DATA_MALFORMED = 20
    DATA_MISSING = 21
    WIRE_GARBAGE = 30
    WIRE_VERSION = 31
    WIRE_TOO_LARGE = 32
    WIRE_TRUNCATED = 33
    WIRE_UNKNOWN_METHOD = 34
    JOB_MISMATCH = 35
    SEGMENT_REFUSED = 36
    ACCESS_DENIED = 37
    TABLE_UNKNOWN = 40
    TABLE_CONFLICT = 41
    TABLE_SHAPE = 42
    ID_LIST_UNKNOWN = 43
    TABLE_FULL = 44
    UNAVAILABLE = 50
    STOPPING = 51
    RECOVERING = 52
    FENCED = 53
    RESIZING = 54
    RESTARTED = 55
    TAKING_OVER = 56
    DEADLINE = 60
    TRAINER_LOST = 61
    CUT_GIVEN_UP = 62
    CHILD_FAILED = 70
    STARTUP_FAILED = 71
    MODEL_UNREADABLE = 72
    FILE_DAMAGED = 73
    FILE_MISSING = 74
    STORAGE_FAILED = 75
    WARM_START_MISFIT = 76
    INTERNAL = 99


@dataclass(frozen=True)
class ErrorSpec:
    """One row of the catalogue.

    `grpc_status` is the name of a `grpc.StatusCode`. `exit_code` is that of a process that ends
    with this error. A call that fails with a `retryable` error may succeed later.
    """

    grpc_status: str
    exit_code: int
    summary: str
    retryable: bool = False


CATALOGUE: dict[ErrorCode, ErrorSpec] = {
    ErrorCode.CONFIG_INVALID: ErrorSpec("INVALID_ARGUMENT", 2, "a setting has a bad value"),
    ErrorCode.CONFIG_UNKNOWN_KEY: ErrorSpec("INVALID_ARGUMENT", 2, "a setting does not exist"),
    ErrorCode.PROGRAM_INVALID: ErrorSpec("INVALID_ARGUMENT", 10, "a program is not legal"),
    ErrorCode.SHAPE_MISMATCH: ErrorSpec("INVALID_ARGUMENT", 11, "shapes of an op do not fit"),
    ErrorCode.NOT_FINITE: ErrorSpec("FAILED_PRECONDITION", 12, "a number is infinite or NaN"),
    ErrorCode.DATA_MALFORMED: ErrorSpec("INVALID_ARGUMENT", 20, "a data file is malformed"),
    ErrorCode.DATA_MISSING: ErrorSpec("NOT_FOUND", 21, "a data file is missing or unreadable"),
    ErrorCode.WIRE_GARBAGE: ErrorSpec("INVALID_ARGUMENT", 30, "bytes are not a psrt frame"),
    ErrorCode.WIRE_VERSION: ErrorSpec("FAILED_PRECONDITION", 31, "protocol versions differ"),
    ErrorCode.WIRE_TOO_LARGE: ErrorSpec("RESOURCE_EXHAUSTED", 32, "a frame is over the limit"),
    ErrorCode.WIRE_TRUNCATED: ErrorSpec("DATA_LOSS", 33, "a frame ended early", True),
    ErrorCode.WIRE_UNKNOWN_METHOD: ErrorSpec("UNIMPLEMENTED", 34, "a method does not exist"),
    ErrorCode.SEGMENT_REFUSED: ErrorSpec(
        "RESOURCE_EXHAUSTED", 36, "shared memory could not be mapped"
    ),
    ErrorCode.ACCESS_DENIED: ErrorSpec("UNAUTHENTICATED", 37, "a caller may not do this"),
    ErrorCode.JOB_MISMATCH: ErrorSpec("FAILED_PRECONDITION", 35, "job id or plan differ"),
    ErrorCode.TABLE_UNKNOWN: ErrorSpec("NOT_FOUND", 40, "a table is not registered"),
    ErrorCode.TABLE_CONFLICT: ErrorSpec("ALREADY_EXISTS", 41, "a table has another spec"),
    ErrorCode.TABLE_SHAPE: ErrorSpec("INVALID_ARGUMENT", 42, "a tensor does not fit its table"),
    ErrorCode.ID_LIST_UNKNOWN: ErrorSpec("NOT_FOUND", 43, "a list of ids is no longer remembered"),
    ErrorCode.TABLE_FULL: ErrorSpec("RESOURCE_EXHAUSTED", 44, "a table has no room left"),
    ErrorCode.UNAVAILABLE: ErrorSpec("UNAVAILABLE", 50, "the peer cannot be reached", True),
    ErrorCode.STOPPING: ErrorSpec("UNAVAILABLE", 51, "the pserver is shutting down"),
    ErrorCode.RECOVERING: ErrorSpec(
        "UNAVAILABLE", 52, "a pserver waits for pushes that trainers send again", retryable=True
    ),
    ErrorCode.FENCED: ErrorSpec("UNAVAILABLE", 53, "another pserver serves this part", True),
    ErrorCode.RESIZING: ErrorSpec(
        "UNAVAILABLE", 54, "a job has, or will have, another number of trainers", retryable=True
    ),
    ErrorCode.RESTARTED: ErrorSpec(
        "UNAVAILABLE", 55, "a call was meant for an earlier process of a pserver", retryable=True
    ),
    ErrorCode.TAKING_OVER: ErrorSpec(
        "UNAVAILABLE", 56, "a backup is about to serve the part of a pserver that was started again"
    ),
    ErrorCode.DEADLINE: ErrorSpec("DEADLINE_EXCEEDED", 60, "a wait passed its deadline"),
    ErrorCode.TRAINER_LOST: ErrorSpec("ABORTED", 61, "a trainer left without completing"),
    ErrorCode.CUT_GIVEN_UP: ErrorSpec("ABORTED", 62, "a cut was not made; training goes on"),
    ErrorCode.CHILD_FAILED: ErrorSpec("ABORTED", 70, "a process of the job failed"),
    ErrorCode.STARTUP_FAILED: ErrorSpec("UNAVAILABLE", 71, "a daemon could not start"),
    ErrorCode.MODEL_UNREADABLE: ErrorSpec("DATA_LOSS", 72, "a saved model cannot be read"),
    ErrorCode.FILE_DAMAGED: ErrorSpec("DATA_LOSS", 73, "a stored file is damaged"),
    ErrorCode.FILE_MISSING: ErrorSpec("NOT_FOUND", 74, "a stored file is missing"),
    ErrorCode.STORAGE_FAILED: ErrorSpec("FAILED_PRECONDITION", 75, "a storage refuses a file"),
    ErrorCode.WARM_START_MISFIT: ErrorSpec(
        "FAILED_PRECONDITION", 76, "saved parameters do not fit the job"
    ),
    ErrorCode.INTERNAL: ErrorSpec("INTERNAL", 99, "a defect in psrt"),
}


class PsrtError(Exception):
    """Base of all errors psrt raises on purpose."""

    default_code: ClassVar[ErrorCode] = ErrorCode.INTERNAL

    def __init__(self, message: str, *, code: ErrorCode | None = None, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code if code is not None else self.default_code
        self.hint = hint

    @property
    def spec(self) -> ErrorSpec:
        return CATALOGUE[self.code]

    @property
    def docs_section(self) -> str:
        """Anchor in docs/reference/errors.md."""
        return self.code.name.lower()

    def __str__(self) -> str:
        hint = f" {self.hint}" if self.hint else ""
        return f"{self.message}{hint}"

    def again(self) -> PsrtError:
        """Return a copy to raise or keep: the original keeps variables of its frames alive."""
        return type(self)(self.message, code=self.code, hint=self.hint)

    def full_text(self) -> str:
        """Return the text that a process prints when it ends with this error."""
        lines = [f"error: {self.message}"]
        if self.hint:
            lines.append(f"  what you can do: {self.hint}")
        page = f"docs/reference/errors.md#{self.docs_section}"
        lines.append(f"  {self.code.name} (exit {self.spec.exit_code}), {page}")
        return "\n".join(lines)


class ConfigError(PsrtError):
    default_code = ErrorCode.CONFIG_INVALID


class ProgramError(PsrtError):
    default_code = ErrorCode.PROGRAM_INVALID


class UnknownNameError(ProgramError, AttributeError):
    """A public module has no such name. `hasattr` returns False, as this is an `AttributeError`."""


class DataError(PsrtError):
    default_code = ErrorCode.DATA_MALFORMED


class WireError(PsrtError):
    default_code = ErrorCode.WIRE_GARBAGE


class AccessError(PsrtError):
    default_code = ErrorCode.ACCESS_DENIED


class TableError(PsrtError):
    default_code = ErrorCode.TABLE_UNKNOWN


class UnavailableError(PsrtError):
    default_code = ErrorCode.UNAVAILABLE


class DeadlineError(PsrtError):
    default_code = ErrorCode.DEADLINE


class JobError(PsrtError):
    default_code = ErrorCode.CHILD_FAILED


class StorageError(PsrtError):
    default_code = ErrorCode.STORAGE_FAILED


class InternalError(PsrtError):
    default_code = ErrorCode.INTERNAL


_CLASS_OF_CODE: dict[ErrorCode, type[PsrtError]] = {
    **{error.default_code: error for error in PsrtError.__subclasses__()},
    ErrorCode.CONFIG_UNKNOWN_KEY: ConfigError,
    ErrorCode.SHAPE_MISMATCH: ProgramError,
    ErrorCode.NOT_FINITE: ProgramError,
    ErrorCode.DATA_MISSING: DataError,
    ErrorCode.MODEL_UNREADABLE: DataError,
    ErrorCode.FILE_DAMAGED: StorageError,
    ErrorCode.FILE_MISSING: StorageError,
    ErrorCode.WIRE_VERSION: WireError,
    ErrorCode.WIRE_TOO_LARGE: WireError,
    ErrorCode.WIRE_TRUNCATED: WireError,
    ErrorCode.WIRE_UNKNOWN_METHOD: WireError,
    ErrorCode.SEGMENT_REFUSED: WireError,
    ErrorCode.JOB_MISMATCH: WireError,
    ErrorCode.TABLE_CONFLICT: TableError,
    ErrorCode.TABLE_SHAPE: TableError,
    ErrorCode.ID_LIST_UNKNOWN: TableError,
    ErrorCode.TABLE_FULL: TableError,
    ErrorCode.STOPPING: UnavailableError,
    ErrorCode.RECOVERING: UnavailableError,
    ErrorCode.FENCED: UnavailableError,
    ErrorCode.RESIZING: UnavailableError,
    ErrorCode.RESTARTED: UnavailableError,
    ErrorCode.TAKING_OVER: UnavailableError,
    ErrorCode.TRAINER_LOST: JobError,
    ErrorCode.CUT_GIVEN_UP: JobError,
    ErrorCode.WARM_START_MISFIT: ConfigError,
    ErrorCode.STARTUP_FAILED: JobError,
}


def plain(error: PsrtError | None) -> dict[str, object] | None:
    """Return an error as JSON has it; `from_code` is the inverse."""
    if error is None:
        return None
    return {"code": int(error.code), "message": error.message, "hint": error.hint}


def from_code(code: int, message: str, hint: str = "") -> PsrtError:
    """Rebuild the error that a peer reported; an unknown number becomes `InternalError`."""
    try:
        known = ErrorCode(code)
    except ValueError:
        return InternalError(f"peer reported unknown error code {code}: {message}", hint=hint)
    return _CLASS_OF_CODE[known](message, code=known, hint=hint)
