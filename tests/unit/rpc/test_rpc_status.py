"""Errors keep their code, words and hint on every way across the wire."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from psrt.core.errors import CATALOGUE, ErrorCode, InternalError, TableError, WireError, from_code
from psrt.rpc import pb
from psrt.rpc.status import from_wire, grpc_status, to_wire
from tests.support.pserver import onlooker


@pytest.mark.parametrize("code", list(ErrorCode))
def test_every_code_crosses_the_wire_and_comes_back_as_its_class(code: ErrorCode) -> None:
    error = from_code(code, "It broke.", "Mend it.")

    back = from_wire(to_wire(error), "PULL to pserver a:1")

    assert type(back) is type(error)
    assert (back.code, back.hint) == (code, "Mend it.")
    assert back.message == "PULL to pserver a:1 failed: It broke."


@pytest.mark.parametrize("code", list(ErrorCode))
def test_every_code_has_the_grpc_status_of_the_catalogue(code: ErrorCode) -> None:
    assert grpc_status(pb.Error(code=int(code))).name == CATALOGUE[code].grpc_status


def test_code_of_a_newer_release_is_an_unknown_status_and_an_internal_error() -> None:
    newer = pb.Error(code=9999, message="Something new.")

    assert grpc_status(newer) == grpc.StatusCode.UNKNOWN
    assert isinstance(from_wire(newer, "PULL"), InternalError)


def test_cause_of_a_remote_error_crosses_the_wire() -> None:
    error = TableError("Table emb cannot be read.")
    error.__cause__ = ValueError("negative seek")

    wire = to_wire(error)

    assert wire.message == "Table emb cannot be read. Cause: ValueError: negative seek"


def test_endless_message_is_cut_to_what_grpc_metadata_can_hold() -> None:
    wire = to_wire(TableError("x" * 100_000))

    assert wire.ByteSize() < 8192


def test_a_reply_there_is_no_memory_for_is_no_defect_of_psrt() -> None:
    wire = to_wire(MemoryError("Unable to allocate 24.0 GiB"))

    assert wire.code == ErrorCode.WIRE_TOO_LARGE
    assert wire.message.startswith("There is no memory for the reply")


def test_another_grpc_server_is_no_defect_of_psrt() -> None:
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        with pytest.raises(
            WireError, match=f"127.0.0.1:{port} is a gRPC server, but no"
        ) as refused:
            onlooker(f"127.0.0.1:{port}")
        assert refused.value.code is ErrorCode.WIRE_UNKNOWN_METHOD
    finally:
        server.stop(None)
