"""The pserver's side of access: challenges, proofs, sessions, and the scope of each call.

Pure but for random numbers: the time is an argument. Any thread may call a gate.
"""

from __future__ import annotations

import hmac
import logging
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from psrt.core.errors import AccessError
from psrt.rpc import pb
from psrt.rpc.access.tokens import OneToken, Token, TokenFile
from psrt.rpc.methods import METHODS, Method

audit = logging.getLogger("psrt.audit")

MOST_CHALLENGES = 4096
MOST_SESSIONS = 65_536
_NONCE_BYTES, _SESSION_BYTES = 32, 24
_LOOK_EVERY_S = 1.0
_NOBODY = Token("", bytes(32), "read")


@dataclass(frozen=True)
class Grant:
    """The token that a caller has proved; None = everybody is admitted."""

    token: Token | None


EVERYBODY = Grant(None)


class Gate:
    """Admits callers that prove a token of `file`; without a file, everybody.

    Of challenges that nobody answers, and of sessions, the oldest are forgotten.
    """

    def __init__(self, file: TokenFile | OneToken | None) -> None:
        self._file = file
        self._lock = threading.Lock()  # guards all of the below
        self._challenges: OrderedDict[bytes, None] = OrderedDict()
        self._sessions: OrderedDict[str, Grant] = OrderedDict()
        self._look_at_s = 0.0

    def answer(self, access: pb.Access, now_s: float) -> tuple[pb.Access, Grant | None]:
        """The reply to OPEN, and the grant once it has succeeded.

        `now_s` are seconds since 1970. Raises `AccessError` for a token or proof that is not good.
        """
        if self._file is None:
            return pb.Access(), EVERYBODY
        if not access.proof:
            return pb.Access(nonce=self._challenge()), None
        grant = Grant(self._proved(access, now_s))
        session = secrets.token_urlsafe(_SESSION_BYTES)
        with self._lock:
            self._sessions[session] = grant
            if len(self._sessions) > MOST_SESSIONS:
                self._sessions.popitem(last=False)
        return pb.Access(session=session), grant

    def grant_of(self, session: str) -> Grant | None:
        """The grant of a caller that names its session; None for one that is unknown."""
        if self._file is None:
            return EVERYBODY
        with self._lock:
            grant = self._sessions.get(session)
            if grant is not None:
                self._sessions.move_to_end(session)
            return grant

    def check(
        self, grant: Grant | None, header: pb.Header, job_id: Callable[[], str], now_s: float
    ) -> None:
        """Raise `AccessError` for a call that is not allowed.

        `job_id` returns the job that is served here, "" = none.
        """
        if grant is None:
            raise AccessError(
                "The caller was not admitted: the first call of a connection is OPEN.",
                hint="Give it a token_file if this pserver has one, and install the same release.",
            )
        if self._file is None or grant.token is None:
            return
        self._look(now_s)
        token = grant.token
        if self._file.tokens.get(token.name) != token or token.has_expired(now_s):
            raise _refused(token.name, "it has expired, or was taken from the list")
        if not token.allows(scope := _scope_of(header)):
            method = Method(header.method).name
            raise _refused(token.name, f"its scope is {token.scope}, and {method} needs {scope}")
        asked = header.hello.job_id if header.method == Method.HELLO else ""
        if token.job and {job_id(), asked} - {"", token.job}:
            raise _refused(token.name, f"it is for job {token.job!r}")

    def _challenge(self) -> bytes:
        nonce = secrets.token_bytes(_NONCE_BYTES)
        with self._lock:
            self._challenges[nonce] = None
            if len(self._challenges) > MOST_CHALLENGES:
                self._challenges.popitem(last=False)
        return nonce

    def _proved(self, access: pb.Access, now_s: float) -> Token:
        """The token of a proof, in a time that does not depend on what is wrong with it."""
        assert self._file is not None
        self._look(now_s)
        with self._lock:
            is_fresh = self._challenges.pop(access.nonce, 0) is None
        token = self._file.tokens.get(access.token, _NOBODY)
        is_proved = hmac.compare_digest(token.proof(access.nonce), access.proof)
        if not is_fresh:
            raise _refused(access.token, "its proof is of an old challenge")
        if token is _NOBODY or not is_proved:
            raise _refused(access.token, "it is unknown, or its key is another one")
        if token.has_expired(now_s):
            raise _refused(access.token, "it has expired")
        return token

    def _look(self, now_s: float) -> None:
        """Look now and then whether the file has changed."""
        assert self._file is not None
        with self._lock:
            if now_s < self._look_at_s:
                return
            self._look_at_s = now_s + _LOOK_EVERY_S
            line = self._file.refresh()
        if line:
            audit.warning("%s", line)


def gate_of(token: Token | None) -> Gate:
    """A gate for callers that have the same token; None admits everybody."""
    return Gate(None if token is None else OneToken(token))


def _scope_of(header: pb.Header) -> str:
    """The scope that a call needs."""
    if header.method == Method.HELLO:
        return "train" if header.hello.plan_hash else "read"
    if header.method == Method.CHECKPOINT and header.cut.trainers:
        return "admin"
    return METHODS[Method(header.method)].scope


def _refused(name: str, why: str) -> AccessError:
    return AccessError(
        f"Token {name[:64]!r} was refused: {why}.",
        hint="See psrt token list on the pserver's host.",
    )
