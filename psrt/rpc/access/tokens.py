"""Tokens of a cluster: names, keys and scopes, as a TOML file lists them.

    [ctr]
    key = "…"               # 32 random bytes in base64, made by `psrt token create`
    scope = "train"         # read, train or admin; each contains those before it
    job = "ctr_dnn"         # optional: good for this job only
    expires = 2027-01-31    # optional: good before this day, in UTC

The file is private: nobody but its owner may read or write it.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import secrets
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

from psrt.core.errors import ConfigError, PsrtError

SCOPES = ("read", "train", "admin")
"""Permissions of a token; each scope contains those before it."""

KEY_BYTES = 32
_FIELDS = {"key", "scope", "job", "expires"}


@dataclass(frozen=True)
class Token:
    """A named secret; `job` "" = any, `expires_s` in seconds since 1970, 0 = never."""

    name: str
    key: bytes
    scope: str
    job: str = ""
    expires_s: float = 0.0

    def proof(self, nonce: bytes) -> bytes:
        """HMAC-SHA256 of a pserver's challenge (RFC 2104)."""
        return hmac.digest(self.key, b"psrt open 1\0" + nonce, "sha256")

    def allows(self, scope: str) -> bool:
        return SCOPES.index(self.scope) >= SCOPES.index(scope)

    def has_expired(self, now_s: float) -> bool:
        """True at `now_s` seconds since 1970 and later, if the token ends before."""
        return 0 < self.expires_s <= now_s


class TokenFile:
    """The tokens of a file that may change; one that cannot be read keeps the tokens before."""

    def __init__(self, path: Path) -> None:
        """Read the file; raises `ConfigError`."""
        self._path = path
        self._stamp = _stamp(path)
        self.tokens = read_tokens(path)

    def refresh(self) -> str:
        """Read the file again if it has changed; returns what is to be logged, "" = nothing."""
        try:
            stamp = _stamp(self._path)
            if stamp == self._stamp:
                return ""
            self._stamp = stamp
            self.tokens = read_tokens(self._path)
        except PsrtError as error:
            return f"the tokens stay as they are: {error}"
        return f"{self._path} has {len(self.tokens)} tokens from now on"


class OneToken:
    """A list of one token, in place of a file."""

    def __init__(self, token: Token) -> None:
        self.tokens = {token.name: token}

    def refresh(self) -> str:
        return ""


def read_tokens(path: Path) -> dict[str, Token]:
    """The tokens of a file, by name; raises `ConfigError` for one that is malformed or public."""
    try:
        with path.open("rb") as file:
            _check_private(path, os.fstat(file.fileno()))
            tables = tomllib.load(file)
    except OSError as error:
        raise ConfigError(
            f"{path}: the tokens cannot be read: {error.strerror}.", hint="Check token_file."
        ) from error
    except ValueError as error:
        raise ConfigError(
            f"{path}: not a TOML file: {error}.", hint="Make tokens with psrt token create."
        ) from error
    return {name: _token(path, name, table) for name, table in tables.items()}


def text_of(token: Token) -> str:
    """The lines of a token in a file."""
    lines = [f"[{token.name}]", f'key = "{base64.b64encode(token.key).decode()}"']
    lines.append(f'scope = "{token.scope}"')
    if token.job:
        lines.append(f'job = "{token.job}"')
    if token.expires_s:
        lines.append(f"expires = {datetime.fromtimestamp(token.expires_s, UTC).date()}")
    return "\n".join(lines) + "\n"


def new_key() -> bytes:
    return secrets.token_bytes(KEY_BYTES)


def _token(path: Path, name: str, table: Any) -> Token:
    if not isinstance(table, Mapping) or table.keys() - _FIELDS:
        raise _malformed(path, name, f"it has {', '.join(sorted(_FIELDS))} and nothing else")
    scope, job, expires = table.get("scope"), table.get("job", ""), table.get("expires")
    if scope not in SCOPES:
        raise _malformed(path, name, f"scope is one of {', '.join(SCOPES)}")
    if not isinstance(job, str):
        raise _malformed(path, name, "job is the name of a job")
    if expires is not None and (not isinstance(expires, date) or isinstance(expires, datetime)):
        raise _malformed(path, name, "expires is a day, such as 2027-01-31")
    ends = datetime.combine(expires, time(), UTC).timestamp() if expires else 0.0
    return Token(name, _key(path, name, table.get("key")), scope, job, ends)


def _key(path: Path, name: str, text: Any) -> bytes:
    try:
        key = base64.b64decode(text, validate=True)
    except (TypeError, binascii.Error):
        key = b""
    if len(key) < KEY_BYTES:
        raise _malformed(path, name, f"key is {KEY_BYTES} bytes or more in base64")
    return key


def _check_private(path: Path, state: os.stat_result) -> None:
    is_roots = state.st_uid == 0 != os.getuid()  # as secrets of Kubernetes are
    group_may = stat.S_IRGRP if is_roots else 0
    if stat.S_IMODE(state.st_mode) & 0o077 & ~group_may:
        raise ConfigError(
            f"{path}: others can read or write the tokens of this file; it was refused.",
            hint=f"chmod 600 {path}, and make new keys if others may have read these.",
        )


def _stamp(path: Path) -> tuple[int, int, int]:
    """Facts that change with the content of a file."""
    try:
        state = path.stat()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}.", hint="Check token_file.") from error
    return state.st_mtime_ns, state.st_ino, state.st_size


def _malformed(path: Path, name: str, rule: str) -> ConfigError:
    return ConfigError(
        f"{path}: token {name!r} is malformed: {rule}.", hint="Make tokens with psrt token create."
    )
