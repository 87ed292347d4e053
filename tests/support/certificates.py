"""Authorities and certificates of tests, as PEM files."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from pathlib import Path

import trustme

from psrt.rpc.access import Identity, assume
from psrt.rpc.tls import TlsFiles, TlsSettings

HOST = "127.0.0.1"


class Authority:
    """An authority whose files are in `folder`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._authority = folder, trustme.CA()
        self.file = folder / "ca.pem"
        self._authority.cert_pem.write_to_path(str(self.file))

    def issue(
        self, name: str, host: str = HOST, *, until: datetime | None = None, ca: Path | None = None
    ) -> TlsSettings:
        """Write a certificate of `host`, again if it exists; its holder trusts `ca`."""
        issued = self._authority.issue_cert(host, not_after=until)
        cert, key = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        cert.write_bytes(b"".join(each.bytes() for each in issued.cert_chain_pems))
        key.touch(mode=0o600)
        issued.private_key_pem.write_to_path(str(key))
        return TlsSettings(str(cert), str(key), str(ca or self.file))


@cache
def cluster_files() -> TlsFiles:
    """Certificates for both ends of a connection in this process."""
    folder = tempfile.TemporaryDirectory(prefix="psrt-test-tls-")
    files = TlsFiles(Authority(Path(folder.name)).issue("cluster"))
    _kept.append(folder)
    return files


_kept: list[tempfile.TemporaryDirectory[str]] = []


@contextlib.contextmanager
def identified(tls: TlsFiles | TlsSettings | None) -> Iterator[None]:
    """Call as the holder of certificates inside the block."""
    files = TlsFiles(tls) if isinstance(tls, TlsSettings) else tls
    assume(Identity(tls=files))
    try:
        yield
    finally:
        assume(Identity())


def flags_of(settings: TlsSettings) -> list[str]:
    """The flags of a command that uses `settings`."""
    files = {"--tls-cert": settings.cert, "--tls-key": settings.key, "--tls-ca": settings.ca}
    return [word for flag, path in files.items() if path for word in (flag, path)]
