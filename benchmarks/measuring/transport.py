"""The transport between processes of a workload: Unix sockets, TCP, or TCP with certificates."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import trustme

from psrt.rpc.access import Identity, assume, assume_certificates
from psrt.rpc.tls import TlsSettings

TRANSPORTS = ("unix", "tcp", "tls")


@contextlib.contextmanager
def over(transport: str) -> Iterator[None]:
    """Let this process and its children use `transport`, through variables."""
    with contextlib.ExitStack() as stack:
        if transport != "unix":
            stack.enter_context(_variables({"PSRT_PSERVER_UNIX_DIR": "off"}))
        if transport == "tls":
            stack.enter_context(_encrypted())
        yield


@contextlib.contextmanager
def _encrypted() -> Iterator[None]:
    with tempfile.TemporaryDirectory(prefix="psrt-bench-tls-") as folder:
        settings = _certificates(Path(folder))
        files = {"TLS_CERT": settings.cert, "TLS_KEY": settings.key, "TLS_CA": settings.ca}
        roles = ("PSRT_PSERVER_", "PSRT_TRAINER_")
        with _variables({role + name: path for role in roles for name, path in files.items()}):
            assume_certificates(settings)
            try:
                yield
            finally:
                assume(Identity())


def _certificates(folder: Path) -> TlsSettings:
    """A certificate of 127.0.0.1 for pservers and trainers, of an authority of its own."""
    authority, (cert, key, ca) = trustme.CA(), (folder / name for name in ("cert", "key", "ca"))
    issued = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(str(ca))
    cert.write_bytes(b"".join(each.bytes() for each in issued.cert_chain_pems))
    key.touch(mode=0o600)
    issued.private_key_pem.write_to_path(str(key))
    return TlsSettings(str(cert), str(key), str(ca))


@contextlib.contextmanager
def _variables(values: dict[str, str]) -> Iterator[None]:
    os.environ.update(values)
    try:
        yield
    finally:
        for name in values:
            del os.environ[name]
