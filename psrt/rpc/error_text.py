"""What a client tells about a call that failed: which call, to whom, how long, what psrt did."""

from __future__ import annotations

from psrt.core.errors import DeadlineError, JobError, PsrtError, UnavailableError
from psrt.rpc import pb
from psrt.rpc.methods import Method

_TABLES_NAMED = 3
_LOST = "See whether that pserver still runs, and the end of its log."


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
        hint="Look at the pserver's log; raise call_timeout_s if rounds take this long.",
    )


def failed(what: str, attempts: int, elapsed_s: float, cause: PsrtError) -> PsrtError:
    """The same kind of error as `cause`, which keeps its own words."""
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


def restarted(endpoint: str) -> JobError:
    """A retry found another process: going on would train on a model that is partly lost."""
    return JobError(
        f"Pserver {endpoint} was started again in the meantime; the parameters it held are lost.",
        hint="Start the job again, all pservers and trainers.",
    )
