"""Pservers and trainers with certificates: real processes, over each carrier."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from psrt.core.errors import CATALOGUE, ErrorCode
from psrt.rpc.hosts import split_endpoint
from psrt.rpc.tls import TlsFiles, TlsSettings
from tests.support.certificates import Authority, flags_of
from tests.support.processes import ROOT, psrt
from tests.support.pserver import daemon
from tests.support.small_job import lines, write_files

DENIED = CATALOGUE[ErrorCode.ACCESS_DENIED].exit_code
WAIT_S = 10.0


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "certificates")


def train(folder: Path, endpoints: list[str], *flags: str) -> tuple[int, str]:
    """Exit code and output of the only trainer of a small job."""
    job = write_files(folder, [lines(320, seed=1)])
    given = "--endpoints", ",".join(endpoints), "--trainers", "1", "--trainer-id", "0", *flags
    with psrt(folder / "trainer.log", "trainer", str(job), *given) as running:
        return running.exit_code(), running.output


@pytest.mark.parametrize("carrier", ["stream", "grpc"])
def test_a_job_of_two_pservers_trains_and_makes_its_cut(
    tmp_path: Path, authority: Authority, carrier: str
) -> None:
    cuts = tmp_path / "cuts"
    flags = *flags_of(authority.issue("pserver")), "--unix-dir", "off", "--checkpoint-dir"
    folders = [tmp_path / name for name in ("a", "b")]
    for folder in folders:
        folder.mkdir()
    with daemon(folders[0], *flags, str(cuts)) as one, daemon(folders[1], *flags, str(cuts)) as two:
        trainer = flags_of(authority.issue("trainer"))
        endpoints = [one.endpoint, two.endpoint]

        code, output = train(tmp_path, endpoints, "--carrier", carrier, *trainer)

        assert code == 0, output
        assert one.exit_code() == two.exit_code() == 0
    assert list(cuts.glob("cut-*/manifest.json"))


@pytest.mark.parametrize("caller", ["nobody", "stranger", "expired name"])
def test_a_trainer_without_a_good_certificate_ends_with_the_reason(
    tmp_path: Path, authority: Authority, caller: str
) -> None:
    other = Authority(tmp_path / "other").issue("trainer", ca=authority.file)
    flags = {
        "nobody": [],
        "stranger": flags_of(other),
        "expired name": flags_of(TlsSettings(ca=str(authority.file))),
    }[caller]
    with daemon(tmp_path, *flags_of(authority.issue("pserver"))) as pserver:
        code, output = train(tmp_path, [pserver.endpoint], *flags)

    assert code == DENIED, output
    assert "tls_ca" in output


def test_commands_find_their_certificates(tmp_path: Path, authority: Authority) -> None:
    own = flags_of(authority.issue("operator"))
    flags = flags_of(authority.issue("pserver"))
    with daemon(tmp_path, *flags, "--checkpoint-dir", str(tmp_path / "cuts")) as pserver:
        asked = "checkpoint", "save", "--endpoint", pserver.endpoint
        with psrt(tmp_path / "with.log", *asked, *own) as running:
            assert running.exit_code() != DENIED
            assert "certificate" not in running.output
        with psrt(tmp_path / "without.log", *asked) as running:
            assert running.exit_code() == DENIED
            assert "accepts encrypted connections only" in running.output


def older_version_is_refused(endpoint: str, settings: TlsSettings) -> bool:
    older = TlsFiles(settings).current().client
    older.minimum_version = older.maximum_version = ssl.TLSVersion.TLSv1_2
    host, port = split_endpoint(endpoint)
    with socket.create_connection((host, port), WAIT_S) as sock:
        try:
            older.wrap_socket(sock, server_hostname=host).close()
        except (ssl.SSLError, ConnectionResetError):
            return True
    return False


SCRIPT = """
import sys
{first}
from psrt.rpc.server import Server
from psrt.rpc.tls import TlsFiles, TlsSettings

server = Server(lambda message, peer: message, tls=TlsFiles(TlsSettings(*sys.argv[1:])))
server.start()
print(server.endpoint, flush=True)
sys.stdin.read()
server.stop(0.0)
"""


def script(settings: TlsSettings, first: str = "") -> subprocess.Popen[str]:
    """A process that opens an encrypted gRPC port by itself."""
    code = SCRIPT.format(first=first)
    command = sys.executable, "-c", code, settings.cert, settings.key, settings.ca
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, text=True, cwd=ROOT, **pipes)


def test_the_grpc_port_of_a_script_refuses_older_versions_of_tls(authority: Authority) -> None:
    with script(authority.issue("pserver")) as process:
        assert process.stdout is not None
        endpoint = process.stdout.readline().strip()

        assert older_version_is_refused(endpoint, authority.issue("trainer"))
        process.communicate()


def test_a_script_that_imports_grpc_before_psrt_opens_no_encrypted_port(
    authority: Authority,
) -> None:
    with script(authority.issue("pserver"), first="import grpc") as process:
        _, said = process.communicate()

    assert process.returncode != 0
    assert "gRPC was imported before psrt" in said


def test_the_grpc_port_refuses_older_versions_of_tls(tmp_path: Path, authority: Authority) -> None:
    flags = flags_of(authority.issue("pserver"))
    with daemon(tmp_path, *flags) as pserver:
        assert older_version_is_refused(pserver.endpoint, authority.issue("trainer"))


def test_listening_beyond_this_host_without_certificates_is_refused(tmp_path: Path) -> None:
    with psrt(tmp_path / "pserver.log", "pserver", "--host", "0.0.0.0", "--port", "0") as running:
        code, output = running.exit_code(), running.output

    assert code != 0
    assert "Listening on 0.0.0.0 without encryption was refused" in output
    assert "--insecure" in output


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl")
def test_the_commands_of_the_page_make_certificates(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "encrypt-traffic.md").read_text()
    commands = page.partition("```sh\n")[2].partition("```")[0]
    subprocess.run(["bash", "-ec", commands], cwd=tmp_path, check=True, capture_output=True)
    made = TlsSettings(*(str(tmp_path / name) for name in ("host-a.pem", "host-a.key", "ca.pem")))

    with daemon(tmp_path, *flags_of(made), "--unix-dir", "off") as pserver:
        code, output = train(tmp_path, [pserver.endpoint], *flags_of(made))

    assert code == 0, output
