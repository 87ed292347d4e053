"""Names under which a browser may call: none that another site could make up."""

from __future__ import annotations

import socket

import pytest

from psrt.observe.host_names import HostNames


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:9170",
        "192.0.2.7",
        "[::1]:9170",
        "[2001:db8::1]",
        "localhost:80",
        "Job.localhost",
        "LOCALHOST.",
        "psrt.example.org:443",
        "",
        socket.gethostname(),
    ],
)
def test_addresses_and_own_names_are_good(host: str) -> None:
    assert HostNames(("psrt.example.org",)).has(host)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:9170",
        "127.0.0.1.evil.example",
        "127.0.0.1@evil.example",
        "localhost.evil.example",
        "[evil.example]",
        "1",
        f"{socket.gethostname()}.evil.example",
    ],
)
def test_names_that_somebody_else_may_own_are_not(host: str) -> None:
    assert not HostNames(("psrt.example.org",)).has(host)
