"""Tokens: who is admitted, to what, and for how long."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from psrt.core.errors import AccessError, ConfigError
from psrt.rpc import pb
from psrt.rpc.access import Gate, Grant, Identity, Token, TokenFile, assume, new_key, tokens
from psrt.rpc.access import gate as gates
from psrt.rpc.access.tokens import read_tokens, text_of
from psrt.rpc.methods import METHODS, Method

NOW_S = 19_676 * 86_400.0 - 10  # ten seconds before midnight
TRAIN = Token("trainers", new_key(), "train", job="ctr")
ADMIN = Token("pservers", new_key(), "admin")
READ = Token("board", new_key(), "read", expires_s=NOW_S + 10)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "tokens.toml", TRAIN, ADMIN, READ)


@pytest.fixture
def gate(path: Path) -> Gate:
    return Gate(TokenFile(path))


@pytest.fixture(autouse=True)
def nobody() -> Iterator[None]:
    yield
    assume(Identity())


def write(path: Path, *tokens: Token) -> Path:
    path.write_text("\n".join(map(text_of, tokens)))
    path.chmod(0o600)
    return path


def admitted(gate: Gate, token: Token, now_s: float = NOW_S) -> Grant:
    challenge, nothing = gate.answer(pb.Access(token=token.name), now_s)
    assert nothing is None
    proved = pb.Access(token=token.name, nonce=challenge.nonce, proof=token.proof(challenge.nonce))
    reply, grant = gate.answer(proved, now_s)
    assert grant is not None
    assert gate.grant_of(reply.session) is grant
    return grant


def call(method: Method, job: str = "", trainers: int = 0) -> pb.Header:
    header = pb.Header(protocol=1, method=method)
    if job:
        header.hello.job_id, header.hello.plan_hash = job, "plan"
    header.cut.trainers = trainers
    return header


def allowed(gate: Gate, grant: Grant | None, header: pb.Header, job: str = "") -> bool:
    try:
        gate.check(grant, header, lambda: job, NOW_S)
    except AccessError:
        return False
    return True


# --- proofs ---------------------------------------------------------------------------------------


def test_who_proves_a_token_is_admitted_by_it(gate: Gate) -> None:
    assert admitted(gate, TRAIN) == Grant(TRAIN)


@pytest.mark.parametrize(
    "liar",
    [replace(TRAIN, key=new_key()), replace(TRAIN, name="nobody"), Token("", bytes(32), "read")],
    ids=["another key", "another name", "the key that stands for nobody"],
)
def test_who_does_not_is_refused(gate: Gate, liar: Token) -> None:
    with pytest.raises(AccessError, match="it is unknown, or its key is another one"):
        admitted(gate, liar)


def test_a_proof_is_good_for_one_use(gate: Gate) -> None:
    challenge, _ = gate.answer(pb.Access(), NOW_S)
    proved = pb.Access(token="board", nonce=challenge.nonce, proof=READ.proof(challenge.nonce))
    gate.answer(proved, NOW_S)

    with pytest.raises(AccessError, match="an old challenge"):
        gate.answer(proved, NOW_S)


def test_a_proof_of_a_number_of_the_callers_own_is_refused(gate: Gate) -> None:
    nonce = bytes(32)

    with pytest.raises(AccessError, match="an old challenge"):
        gate.answer(pb.Access(token="board", nonce=nonce, proof=READ.proof(nonce)), NOW_S)


def test_without_tokens_everybody_is_admitted() -> None:
    reply, grant = Gate(None).answer(pb.Access(), NOW_S)

    assert grant is not None
    assert reply == pb.Access()
    assert allowed(Gate(None), grant, call(Method.REPLICATE))
    assert not allowed(Gate(None), None, call(Method.STATUS))


def test_challenges_and_sessions_are_bounded(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "MOST_CHALLENGES", 2)
    monkeypatch.setattr(gates, "MOST_SESSIONS", 2)
    for _ in range(5):
        gate.answer(pb.Access(), NOW_S)
        admitted(gate, ADMIN)

    assert len(gate._challenges) <= 2
    assert len(gate._sessions) == 2


# --- scopes ---------------------------------------------------------------------------------------


def test_each_method_needs_the_scope_in_its_table(gate: Gate) -> None:
    tokens = {"read": READ, "train": replace(TRAIN, job=""), "admin": ADMIN}
    order = list(tokens)
    for method, spec in METHODS.items():
        if method in (Method.HELLO, Method.OPEN):
            continue
        for scope, token in tokens.items():
            enough = order.index(scope) >= order.index(spec.scope)
            gate._file.tokens[token.name] = token  # type: ignore[union-attr]
            assert allowed(gate, Grant(token), call(method)) == enough, (method, scope)


def test_a_plan_and_another_number_of_trainers_need_more(gate: Gate) -> None:
    assert allowed(gate, Grant(READ), call(Method.HELLO))
    assert not allowed(gate, Grant(READ), call(Method.HELLO, job="ctr"))
    assert allowed(gate, Grant(TRAIN), call(Method.CHECKPOINT))
    assert not allowed(gate, Grant(TRAIN), call(Method.CHECKPOINT, trainers=3))
    assert allowed(gate, Grant(ADMIN), call(Method.CHECKPOINT, trainers=3))


def test_a_token_of_one_job_is_not_good_for_another(gate: Gate) -> None:
    grant = Grant(TRAIN)

    assert allowed(gate, grant, call(Method.HELLO, job="ctr"))
    assert allowed(gate, grant, call(Method.PULL), job="ctr")
    assert not allowed(gate, grant, call(Method.HELLO, job="other"))
    assert not allowed(gate, grant, call(Method.PULL), job="other")


def test_the_key_that_stands_for_nobody_allows_nothing(gate: Gate) -> None:
    assert not allowed(gate, None, call(Method.STATUS))


# --- time and files -------------------------------------------------------------------------------


def test_a_token_ends_at_its_day_for_those_who_have_proved_it_too(gate: Gate) -> None:
    grant = admitted(gate, READ)
    gate.check(grant, call(Method.STATUS), str, NOW_S + 9)

    with pytest.raises(AccessError, match="expired"):
        gate.check(grant, call(Method.STATUS), str, NOW_S + 10)
    with pytest.raises(AccessError, match="expired"):
        admitted(gate, READ, NOW_S + 10)


def test_a_revoked_token_is_refused_within_a_second_and_others_stay(gate: Gate, path: Path) -> None:
    revoked, kept = admitted(gate, TRAIN), admitted(gate, ADMIN)
    write(path, ADMIN)
    os.utime(path, (NOW_S, NOW_S))

    gate.check(kept, call(Method.STATUS), str, NOW_S + 1)
    with pytest.raises(AccessError, match="taken from the list"):
        gate.check(revoked, call(Method.STATUS), str, NOW_S + 1)


def test_a_file_that_becomes_unreadable_keeps_its_tokens(
    gate: Gate, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    grant = admitted(gate, ADMIN)
    path.write_text("no TOML")

    gate.check(grant, call(Method.STATUS), str, NOW_S + 1)

    assert "the tokens stay as they are" in caplog.text


def test_a_file_that_others_can_read_is_refused(path: Path) -> None:
    path.chmod(0o640)

    with pytest.raises(ConfigError, match="others can read or write the tokens"):
        read_tokens(path)


def test_a_group_may_read_a_file_of_roots_as_secrets_of_kubernetes_are(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path_mode = path.stat().st_mode
    monkeypatch.setattr(os, "getuid", lambda: 10001)

    def of_root(mode: int) -> os.stat_result:
        return os.stat_result((path_mode & ~0o777 | mode, 1, 1, 1, 0, 10001, 0, 0, 0, 0))

    tokens._check_private(path, of_root(0o440))
    with pytest.raises(ConfigError, match="others can read or write"):
        tokens._check_private(path, of_root(0o460))
    with pytest.raises(ConfigError, match="others can read or write"):
        tokens._check_private(path, of_root(0o444))


@pytest.mark.parametrize(
    "line",
    [
        'key = "AAAA"',
        "key = 1",
        'scope = "root"',
        "job = 1",
        'expires = "soon"',
        "expires = 2027-01-31T00:00:00",
        "extra = 1",
    ],
)
def test_a_malformed_token_is_named_with_its_file(tmp_path: Path, line: str) -> None:
    good = text_of(replace(ADMIN, name="x")).splitlines()
    lines = [each for each in good if each.split()[0] != line.split()[0]]
    path = tmp_path / "tokens.toml"
    path.write_text("\n".join([*lines, line]))
    path.chmod(0o600)

    with pytest.raises(ConfigError, match=f"{path}: token 'x' is malformed"):
        read_tokens(path)


def test_what_is_written_is_read() -> None:
    day_s = 1_800_000_000 // 86_400 * 86_400.0
    token = Token("x", new_key(), "train", "ctr", day_s)

    assert "expires = 2027-01-15" in text_of(token)
