"""The certificate, key and authority of a process, from PEM files that may change.

Files are looked at once a second, when a connection is made. Files that cannot be used are logged,
and those before stay in use.
"""

from __future__ import annotations

import logging
import os
import ssl
import stat
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from psrt.core.errors import ConfigError, PsrtError

audit = logging.getLogger("psrt.audit")

CIPHERS_VARIABLE = "GRPC_SSL_CIPHER_SUITES"
NO_OLDER_TLS = "ECDHE-PSK-CHACHA20-POLY1305"
"""For gRPC, which has no setting for the least version: cipher suites of TLS 1.2 that need a key
which nobody has, so that TLS 1.3 is left, whose suites are fixed."""

_LOOK_EVERY_S = 1.0


@dataclass(frozen=True)
class TlsSettings:
    """PEM files of a process: `cert` with its chain, the `key` of it, and the authority `ca`.

    A pserver needs all three, a caller `ca`, and the others where pservers ask for them. With
    `any_caller` a pserver asks callers for no certificate.
    """

    cert: str = ""
    key: str = ""
    ca: str = ""
    any_caller: bool = False

    @property
    def is_set(self) -> bool:
        return bool(self.cert or self.key or self.ca)

    def check(self, *, is_pserver: bool) -> None:
        """Raise `ConfigError` for files that are missing from the settings."""
        wanted = {"tls_ca": self.ca}
        if is_pserver or self.cert or self.key:
            wanted |= {"tls_cert": self.cert, "tls_key": self.key}
        if missing := [name for name, path in wanted.items() if not path]:
            raise ConfigError(
                f"{' and '.join(missing)} must be set, too, to encrypt connections.",
                hint="A pserver needs tls_cert, tls_key and tls_ca; a caller tls_ca at least.",
            )


@dataclass(frozen=True)
class LoadedCertificates:
    """The content of the files at one time, for both libraries of TLS."""

    client: ssl.SSLContext
    server: ssl.SSLContext | None
    cert: bytes | None = field(repr=False)
    key: bytes | None = field(repr=False)
    ca: bytes = field(repr=False)


class TlsFiles:
    """The files of `settings` in use; any thread may call this."""

    def __init__(self, settings: TlsSettings) -> None:
        """Read the files; raises `ConfigError`."""
        self.settings = settings
        self._lock = threading.Lock()
        self._stamp = _stamp(settings)
        self._look_at_s = time.monotonic() + _LOOK_EVERY_S
        self._loaded = _load(settings)

    def current(self) -> LoadedCertificates:
        """The files as they are now; those before if they cannot be used."""
        with self._lock:
            if time.monotonic() >= self._look_at_s:
                self._look()
            return self._loaded

    def _look(self) -> None:
        self._look_at_s = time.monotonic() + _LOOK_EVERY_S
        try:
            stamp = _stamp(self.settings)
            if stamp == self._stamp:
                return
            self._stamp, self._loaded = stamp, _load(self.settings)
        except PsrtError as error:
            audit.warning("the certificates stay as they are: %s", error)
            return
        audit.warning("%s was read again", self.settings.cert or self.settings.ca)


def _load(settings: TlsSettings) -> LoadedCertificates:
    for path in filter(None, (settings.cert, settings.key, settings.ca)):
        _check_readable(path, is_secret=path == settings.key)
    try:
        client = _client_context(settings)
        server = _server_context(settings) if settings.cert else None
    except (OSError, ValueError) as error:  # `ssl.SSLError` is an OSError
        raise ConfigError(
            f"The certificates cannot be used: {error}.",
            hint=f"Check tls_cert {settings.cert!r}, tls_key {settings.key!r} and tls_ca "
            f"{settings.ca!r}: PEM files, and the key is that of the certificate.",
        ) from error
    cert, key = (_bytes_of(path) if path else None for path in (settings.cert, settings.key))
    return LoadedCertificates(client, server, cert, key, _bytes_of(settings.ca))


def _client_context(settings: TlsSettings) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_verify_locations(settings.ca)
    context.set_alpn_protocols(["h2"])  # gRPC closes a connection that does not offer it
    if settings.cert:
        context.load_cert_chain(settings.cert, settings.key)
    return context


def _server_context(settings: TlsSettings) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0  # a resumed session would outlast the certificate of its caller
    context.load_cert_chain(settings.cert, settings.key)
    context.load_verify_locations(settings.ca)
    if not settings.any_caller:
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _check_readable(path: str, *, is_secret: bool) -> None:
    try:
        with open(path, "rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror}.", hint="Check tls_cert, tls_key and tls_ca."
        ) from error
    if is_secret and mode & 0o007:
        raise ConfigError(
            f"{path}: everybody can read or write this key; it was refused.",
            hint=f"chmod 600 {path}, and make a new key if others may have read it.",
        )


def _bytes_of(path: str) -> bytes:
    return Path(path).read_bytes()


def _stamp(settings: TlsSettings) -> tuple[tuple[int, int, int], ...]:
    """Facts that change with the content of the files."""
    states = []
    for path in filter(None, (settings.cert, settings.key, settings.ca)):
        try:
            state = os.stat(path)
        except OSError as error:
            raise ConfigError(
                f"{path}: {error.strerror}.", hint="Check tls_cert, tls_key and tls_ca."
            ) from error
        states.append((state.st_mtime_ns, state.st_ino, state.st_size))
    return tuple(states)
