"""Error texts of a client: the call that failed, its endpoint, its duration and what psrt did."""

from __future__ import annotations

from psrt.core.errors import (
    AccessError,
    DeadlineError,
    ErrorCode,
    JobError,
    PsrtError,
    UnavailableError,
)
from psrt.rpc import pb
from psrt.rpc.methods import Method

_TABLES_NAMED = 3
_LOST = "Check that this pserver still runs, and read the end of its log."


def describe(header: pb.Header, endpoint: str) -> str:
    """`EXCHANGE of round 7 (fc_0.w_0, fc_0.b_0, emb and 3 more) to pserver 127.0.0.1:6170`."""
    text = Method(header.method).name
    if header.method == Method.EXCHANGE:
        text += f" of round {header.round}"
    tables = list(dict.fromkeys(part.table for part in header.parts))
    if tables:
        unnamed = len(tables) - _TABLES_NAMED
        more = f" and {unnamed} more" if unnamed > 0 else ""
        text += f" ({', '.join(tables[:_TABLES_NAMED])}{more})"
    whom = "trainer" if header.method == Method.RECORDS else "pserver"
    return f"{text} to {whom} {endpoint}"


def _late(what: str, elapsed_s: float) -> DeadlineError:
    return DeadlineError(
        f"{what} got no reply in {elapsed_s:.1f} s; the connection was closed.",
        hint="Read the pserver's log; raise call_timeout_s if rounds take this long.",
    )


def failed(what: str, attempts: int, elapsed_s: float, cause: PsrtError) -> PsrtError:
    """An error of the class of `cause`, with its message and hint."""
    if isinstance(cause, DeadlineError):
        return _late(what, elapsed_s)
    times = "1 attempt" if attempts == 1 else f"{attempts} attempts"
    text = f"{what} failed after {times} in {elapsed_s:.1f} s. {cause.message}"
    hint = cause.hint or (_LOST if isinstance(cause, UnavailableError) else "")
    return type(cause)(text, code=cause.code, hint=hint)


def unreachable(endpoint: str, elapsed_s: float, cause: PsrtError) -> UnavailableError:
    return UnavailableError(
        f"Pserver {endpoint} was not reached in {elapsed_s:.1f} s. {cause.message}",
        hint="Check that it runs, and that host and port are the ones it printed.",
    )


def not_admitted(endpoint: str, cause: AccessError) -> AccessError:
    return AccessError(f"HELLO to pserver {endpoint} failed. {cause.message}", hint=cause.hint)


def restarted(endpoint: str) -> JobError:
    """The error of a retry that met another process, whose part of the model is lost."""
    return JobError(
        f"Pserver {endpoint} was started again; the parameters it held are lost.",
        hint="Start the job again, all pservers and trainers, with --resume latest if it writes "
        "cuts. One with a durability goes on by itself.",
    )


def lost_if_late(error: PsrtError) -> PsrtError:
    """The error of an attempt that had less time than its call: a late reply counts as lost."""
    late = isinstance(error, DeadlineError)
    return UnavailableError(error.message, hint=error.hint) if late else error


def fenced(endpoint: str) -> UnavailableError:
    """The error of a call to a pserver that this trainer has deposed."""
    return UnavailableError(
        f"Pserver {endpoint} no longer serves this part; the call goes to its backup.",
        code=ErrorCode.FENCED,
        hint="See the logs of both pservers: the backup serves once every trainer asks it to.",
    )


def taking_over(endpoint: str) -> UnavailableError:
    """The error of a trainer that joins, and meets another process than before."""
    return UnavailableError(
        f"Pserver {endpoint} was started again while this trainer joined; its backup is about to "
        "serve its part. The trainer joins once more.",
        code=ErrorCode.TAKING_OVER,
        hint="See the logs of both pservers: the backup serves once every trainer asks it to.",
    )
