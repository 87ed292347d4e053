"""Callers that do not belong, over each carrier: refused in a second, by name, and recorded.

The pservers are processes of their own. A caller knocks with sockets or channels of its own, so
that the time is that of the refusal and of nothing else. The limit of a second is that of the
security promise; the pserver refuses within milliseconds, and a busy host may try three times.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from psrt.cli.main import run
from psrt.core.errors import CATALOGUE, AccessError, ErrorCode, PsrtError
from psrt.rpc import pb
from psrt.rpc.access import Identity, Token, assume, new_key, text_of
from psrt.rpc.dialing import Connection
from psrt.rpc.grpc_ import GrpcConnection
from psrt.rpc.hosts import split_endpoint
from psrt.rpc.methods import Method
from psrt.rpc.stream import connect_tcp, connect_unix
from psrt.rpc.tls import TlsFiles, TlsSettings
from psrt.rpc.wire import Message
from tests.support.carriers import eventually
from tests.support.certificates import Authority, flags_of
from tests.support.pserver import DaemonProcess, daemon
from tests.support.raw_stream import WAIT_S

MOST_S = 1.0
TRIES = 3
LONG_AGO = datetime(2020, 1, 1)
CARRIERS = "stream", "unix", "grpc"
TCP = "stream", "grpc"


@dataclass
class Place:
    """A pserver with certificates and tokens, and what its callers may have."""

    pserver: DaemonProcess
    own: Authority
    other: Authority
    tokens: dict[str, Token]
    file: Path

    def trainer(self) -> TlsSettings:
        return self.own.issue("trainer")

    def revoke(self, name: str) -> None:
        del self.tokens[name]
        self.file.write_text("".join(map(text_of, self.tokens.values())))

    def audited(self) -> int:
        return self.pserver.log.read_text().count("refused ")

    def handshakes(self, carrier: str) -> int:
        """Refused handshakes in the log; of those of its port, gRPC writes lines of its own."""
        text = "Handshake failed" if carrier == "grpc" else "refused stream-tcp"
        return self.pserver.log.read_text().count(text)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("place")
    own, other = Authority(folder / "own"), Authority(folder / "other")
    scopes = {"admin": "admin", "train": "train", "read": "read"}
    scopes |= {f"gone-{carrier}": "train" for carrier in CARRIERS}
    tokens = {name: Token(name, new_key(), scope) for name, scope in scopes.items()}
    past = datetime(2021, 1, 1, tzinfo=UTC).timestamp()
    tokens["late"] = Token("late", new_key(), "train", expires_s=past)
    tokens["others"] = Token("others", new_key(), "train", job="another")
    file = folder / "tokens.toml"
    file.touch(mode=0o600)
    file.write_text("".join(map(text_of, tokens.values())))
    flags = *flags_of(own.issue("pserver")), "--token-file", str(file), "--stay"
    with daemon(folder, *flags, is_forked=False) as pserver:
        yield Place(pserver, own, other, tokens, file)


@pytest.fixture(autouse=True)
def nobody() -> Iterator[None]:
    yield
    assume(Identity())


def call(place: Place, carrier: str, header: pb.Header) -> pb.Header:
    """Make one call over a connection of its own; raises the error of a refusal."""
    facts = place.pserver.facts
    connect: dict[str, Callable[[], Connection]] = {
        "stream": lambda: connect_tcp(facts["data_endpoints"][0], WAIT_S),
        "unix": lambda: connect_unix(facts["unix_path"], WAIT_S),
        "grpc": lambda: GrpcConnection(facts["endpoint"]),
    }
    with contextlib.closing(connect[carrier]()) as connection:
        reply = connection.call(Message(header), WAIT_S).header
    if reply.HasField("error"):
        raise AccessError(f"{reply.error.code} {reply.error.message}")
    return reply


STATUS = pb.Header(protocol=1, method=Method.STATUS)
HELLO = pb.Header(
    protocol=1, method=Method.HELLO, hello=pb.Hello(job_id="job", plan_hash="p", trainers=1)
)
RESIZE = pb.Header(protocol=1, method=Method.CHECKPOINT, cut=pb.Cut(trainers=2))


def be(place: Place, token: str = "", tls: TlsSettings | None = None, **other: object) -> None:
    """Call with a token of the file, with changes, and with certificates."""
    proved = dataclasses.replace(place.tokens[token], **other) if token else None
    assume(Identity(proved, None if tls is None else TlsFiles(tls)))


def no_certificate(place: Place, carrier: str) -> None:
    be(place, "train", TlsSettings(ca=str(place.own.file)))
    call(place, carrier, STATUS)


def wrong_authority(place: Place, carrier: str) -> None:
    be(place, "train", place.other.issue("stranger", ca=place.own.file))
    call(place, carrier, STATUS)


def expired_certificate(place: Place, carrier: str) -> None:
    be(place, "train", place.own.issue("expired", until=LONG_AGO))
    call(place, carrier, STATUS)


def plaintext(place: Place, carrier: str) -> None:
    be(place, "train")
    call(place, carrier, STATUS)


def older_tls(place: Place, carrier: str) -> None:
    context = TlsFiles(place.trainer()).current().client
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
    facts = place.pserver.facts
    where = facts["endpoint"] if carrier == "grpc" else facts["data_endpoints"][0]
    address = split_endpoint(where)
    with socket.create_connection(address, WAIT_S) as sock:
        context.wrap_socket(sock, server_hostname=address[0]).close()


def no_token(place: Place, carrier: str) -> None:
    """Call without a proof; a client of psrt would not even try."""
    be(place, tls=place.trainer())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("psrt.rpc.stream.stream.prove", lambda call, where: "")
        call(place, carrier, STATUS)


def wrong_key(place: Place, carrier: str) -> None:
    be(place, "train", place.trainer(), key=new_key())
    call(place, carrier, STATUS)


def unknown_name(place: Place, carrier: str) -> None:
    be(place, "train", place.trainer(), name="nobody")
    call(place, carrier, STATUS)


def expired_token(place: Place, carrier: str) -> None:
    be(place, "late", place.trainer())
    call(place, carrier, STATUS)


def token_of_another_job(place: Place, carrier: str) -> None:
    be(place, "others", place.trainer())
    call(place, carrier, HELLO)


def too_narrow_for_training(place: Place, carrier: str) -> None:
    be(place, "read", place.trainer())
    call(place, carrier, HELLO)


def too_narrow_for_a_resize(place: Place, carrier: str) -> None:
    be(place, "train", place.trainer())
    call(place, carrier, RESIZE)


def replayed_proof(place: Place, carrier: str) -> None:
    """Prove a token by bytes that were a proof before."""
    proofs: list[pb.Access] = []
    be(place, "train", place.trainer())
    proving = Token.proof

    def remembered(token: Token, nonce: bytes) -> bytes:
        proofs.append(pb.Access(token=token.name, nonce=nonce, proof=proving(token, nonce)))
        return proofs[-1].proof

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Token, "proof", remembered)
        call(place, carrier, STATUS)
    call(place, carrier, pb.Header(protocol=1, method=Method.OPEN, access=proofs[0]))


OF_CERTIFICATES = (no_certificate, wrong_authority, expired_certificate, plaintext, older_tls)
OF_TOKENS = (
    no_token,
    wrong_key,
    unknown_name,
    expired_token,
    token_of_another_job,
    too_narrow_for_training,
    too_narrow_for_a_resize,
    replayed_proof,
)
"""Each makes a call that must be refused. Unix sockets have no certificates: the kernel names the
user of a caller (`tests/unit/rpc/test_unix_peers.py`)."""


def refused_in_s(knock: Callable[[Place, str], None], place: Place, carrier: str) -> float:
    began = time.monotonic()
    with pytest.raises((PsrtError, ssl.SSLError, ConnectionError)):
        knock(place, carrier)
    return time.monotonic() - began


@pytest.mark.parametrize("carrier", TCP)
@pytest.mark.parametrize("knock", OF_CERTIFICATES)
def test_callers_without_a_good_certificate_are_refused(
    place: Place, carrier: str, knock: Callable[[Place, str], None]
) -> None:
    before = place.handshakes(carrier)

    assert min(refused_in_s(knock, place, carrier) for _ in range(TRIES)) <= MOST_S
    line = "the line of a refusal"
    eventually(lambda: place.handshakes(carrier) >= before + TRIES, line, logs=[place.pserver.log])


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("knock", OF_TOKENS)
def test_callers_without_a_good_token_are_refused_by_name_and_recorded(
    place: Place, carrier: str, knock: Callable[[Place, str], None]
) -> None:
    before, took_s = place.audited(), []
    for _ in range(TRIES):
        began = time.monotonic()
        with pytest.raises(AccessError):
            knock(place, carrier)
        took_s.append(time.monotonic() - began)

    assert min(took_s) <= MOST_S
    assert place.audited() == before + TRIES


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_revoked_token_is_refused_once_the_pserver_has_read_the_file(
    place: Place, carrier: str
) -> None:
    def knock(place: Place, carrier: str) -> None:
        call(place, carrier, STATUS)

    def is_refused() -> bool:
        try:
            knock(place, carrier)
        except AccessError:
            return True
        return False

    be(place, f"gone-{carrier}", place.trainer())
    assert not is_refused()

    place.revoke(f"gone-{carrier}")
    eventually(is_refused, "the file of tokens to be read again")

    assert min(refused_in_s(knock, place, carrier) for _ in range(TRIES)) <= MOST_S


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_caller_that_belongs_is_admitted(place: Place, carrier: str) -> None:
    be(place, "train", place.trainer())

    assert call(place, carrier, STATUS).status_json


def with_wrong_token(place: Place) -> list[str]:
    token = dataclasses.replace(place.tokens["admin"], key=new_key())
    file = place.file.with_name("wrong.toml")
    file.touch(mode=0o600)
    file.write_text(text_of(token))
    return [*flags_of(place.trainer()), "--token-file", str(file)]


def with_narrow_token(place: Place) -> list[str]:
    file = place.file.with_name("narrow.toml")
    file.touch(mode=0o600)
    file.write_text(text_of(place.tokens["read"]))
    return [*flags_of(place.trainer()), "--token-file", str(file)]


def without_token(place: Place) -> list[str]:
    return flags_of(place.trainer())


def with_another_authority(place: Place) -> list[str]:
    return flags_of(place.other.issue("operator", ca=place.own.file))


def without_certificate(place: Place) -> list[str]:
    return flags_of(TlsSettings(ca=str(place.own.file)))


def in_clear(place: Place) -> list[str]:
    return []


STRANGERS = (with_wrong_token, without_token, with_another_authority, without_certificate, in_clear)
COMMANDS = {
    "status": ["status", "ENDPOINT"],
    "status --web": ["status", "ENDPOINT", "--web"],
    "save": ["checkpoint", "save", "--endpoint", "ENDPOINT"],
    "scale": ["scale", "--endpoint", "ENDPOINT", "--trainers", "2"],
}


def code_of(place: Place, command: str, flags: list[str]) -> int:
    words = COMMANDS.get(command, command.split())
    return run([place.pserver.endpoint if word == "ENDPOINT" else word for word in words] + flags)


@pytest.mark.parametrize("flags", STRANGERS)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_refused_operator_gets_the_exit_code_of_a_refusal_and_what_to_do(
    place: Place,
    command: str,
    flags: Callable[[Place], list[str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert code_of(place, command, flags(place)) == CATALOGUE[ErrorCode.ACCESS_DENIED].exit_code

    text = capsys.readouterr().err
    assert place.pserver.endpoint in text
    assert "what you can do:" in text
    assert "ACCESS_DENIED (exit 37)" in text


@pytest.mark.parametrize("command", ["save", "scale"])
def test_a_token_that_is_too_narrow_for_a_command_is_refused(
    place: Place, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of(place, command, with_narrow_token(place)) == 37
    assert "read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "kind"), [(with_wrong_token, "token"), (without_certificate, "certificate")]
)
def test_psrt_doctor_finds_a_refusal(
    place: Place, flags: Callable[[Place], list[str]], kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of(place, f"doctor --json {place.pserver.endpoint}", flags(place)) == 1

    found = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    assert found[kind]["where"] == place.pserver.endpoint
