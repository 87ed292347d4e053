"""Names of hosts, which gRPC looks up as the system does."""

from __future__ import annotations

from contextlib import closing

import pytest

from psrt.core.errors import UnavailableError
from psrt.rpc import pb
from psrt.rpc.grpc_ import GrpcConnection
from psrt.rpc.wire import Message


def test_grpc_looks_names_up_by_the_system_as_other_sockets_do() -> None:
    with (
        closing(GrpcConnection("no host:1")) as connection,
        pytest.raises(UnavailableError, match="getaddrinfo"),
    ):
        connection.call(Message(pb.Header()), timeout_s=60.0)
