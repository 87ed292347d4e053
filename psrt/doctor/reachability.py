"""Reasons for which a pserver does not answer: name, port, encryption, another server there."""

from __future__ import annotations

import socket

from psrt.doctor.findings import Finding
from psrt.rpc.access import identity
from psrt.rpc.hosts import split_endpoint
from psrt.rpc.tls import why_refused
from psrt.status import Unreachable

_PROBE_S = 2.0


def check_reachability(facts: Unreachable) -> Finding:
    """Try each step of a connection, and name the first that fails."""
    endpoint = facts.endpoint
    host, port = split_endpoint(endpoint)
    try:
        socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        what = f"the name {host} has no address: {error.strerror}."
        return Finding("dns", endpoint, what, "Correct the endpoint, /etc/hosts or DNS.")
    try:
        socket.create_connection((host, port), _PROBE_S).close()
    except ConnectionRefusedError:
        what = f"nothing listens on port {port} of {host}."
        return Finding("port-closed", endpoint, what, "Start the pserver, or see its log.")
    except OSError as error:
        what = f"{host} does not answer: {error}."
        return Finding("no-route", endpoint, what, "Check that the host is up, and its firewall.")
    if (refused := why_refused(endpoint, identity().tls)) is not None:
        return Finding("encryption", endpoint, refused.message, refused.hint)
    remedy = "See the log of the pserver; compare its 'ready on' line with this endpoint."
    return Finding("no-answer", endpoint, facts.reason, remedy)
