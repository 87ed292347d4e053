"""The identity of this process: its token and certificates, and how it is proved to a pserver.

A process has one identity, as it has one user. It is set when the process starts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from psrt.core.errors import AccessError, ConfigError
from psrt.rpc import pb
from psrt.rpc.access.tokens import SCOPES, Token, read_tokens
from psrt.rpc.methods import Method
from psrt.rpc.tls import TlsFiles, TlsSettings
from psrt.rpc.wire import PROTOCOL


@dataclass(frozen=True)
class Identity:
    """The `token` that this process proves, and its certificates; None = it has none.

    With certificates, connections over TCP are encrypted. One that is `insecure` listens beyond
    loopback without them.
    """

    token: Token | None = None
    tls: TlsFiles | None = None
    insecure: bool = False


_identity = Identity()


def assume(identity: Identity) -> None:
    """Be `identity` from now on, for new connections."""
    global _identity
    _identity = identity


def assume_token_of(path: str) -> None:
    """Be the owner of the token in a file, of several the one with the widest scope.

    Raises `ConfigError` for a file that cannot be read or has none.
    """
    tokens = read_tokens(Path(path))
    if not tokens:
        raise ConfigError(f"{path}: the file has no token.", hint="Make one: psrt token create.")
    widest = max(tokens.values(), key=lambda each: SCOPES.index(each.scope))
    assume(replace(_identity, token=widest))


def assume_certificates(settings: TlsSettings) -> None:
    """Encrypt connections by the certificates of `settings`, if there are any.

    Raises `ConfigError`.
    """
    if settings.is_set:
        settings.check(is_pserver=False)
        assume(replace(_identity, tls=TlsFiles(settings)))


def assume_insecure() -> None:
    """Listen beyond loopback without encryption, where a server of this process has to."""
    assume(replace(_identity, insecure=True))


def identity() -> Identity:
    return _identity


def prove(call: Callable[[pb.Header], pb.Header], where: str) -> str:
    """Make the calls OPEN by which the pserver at `where` admits this process.

    Returns the session, "" if it needs none. Raises `AccessError` where it needs a token and this
    process has none. `call` raises the errors that the pserver reports.
    """
    token = _identity.token
    name = "" if token is None else token.name
    reply = call(_open(pb.Access(token=name))).access
    if not reply.nonce:
        return str(reply.session)
    if token is None:
        raise AccessError(
            f"The pserver {where} admits callers by tokens, and this process has none.",
            hint="Set token_file, or the variable PSRT_TOKEN_FILE, to a file with a token.",
        )
    nonce = bytes(reply.nonce)
    proved = pb.Access(token=name, nonce=nonce, proof=token.proof(nonce))
    return str(call(_open(proved)).access.session)


def _open(access: pb.Access) -> pb.Header:
    return pb.Header(protocol=PROTOCOL, method=Method.OPEN, access=access)
